// Talks to the AG-UI route of an agent as its clients do, and writes what they have as JSON.
//
// Arguments: the folder with the npm packages, the address of the route.

import { createRequire } from "node:module";

const [folder, url] = process.argv.slice(2);
const require = createRequire(`${folder}/package.json`);
const { HttpAgent } = require("@ag-ui/client");

function open(threadId) {
  const agent = new HttpAgent({ url, threadId, headers: { "x-user": "ada" } });
  agent.say = async (id, content) => {
    agent.addMessage({ id, role: "user", content });
    const types = [];
    const onEvent = ({ event }) => void types.push(event.type);
    const { newMessages } = await agent.runAgent({}, { onEvent });
    return { types, newMessages };
  };
  return agent;
}

const talking = open("talk");
const turns = [await talking.say("m1", "hello"), await talking.say("m2", "again")];

const asking = open("ask");
const asked = await asking.say("m1", "ask");
asking.addMessage({ id: "t1", role: "tool", toolCallId: "c1", content: "Rome" });
const located = await asking.runAgent({});
const later = await asking.say("m2", "later");

const seen = { turns, talked: talking.messages, asked, located, later, messages: asking.messages };
process.stdout.write(JSON.stringify(seen));
