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

// Fresh clients without messages: of a conversation, of one that waits for a decision, of none.
const restoring = open("talk");
const restoredTypes = [];
await restoring.runAgent({}, { onEvent: ({ event }) => void restoredTypes.push(event.type) });
const restored = structuredClone(restoring.messages);
const afterwards = await restoring.say("m3", "third");

const paying = open("pay");
await paying.say("m1", "pay");
const deciding = open("pay");
await deciding.runAgent({});
const asksFor = structuredClone(deciding.pendingInterrupts);
const [{ id: interruptId }] = asksFor;
const resume = [{ interruptId, status: "resolved", payload: { approved: true } }];
const paid = await deciding.runAgent({ resume });

const calling = open("ask-later");
await calling.say("m1", "ask");
const locating = open("ask-later");
await locating.runAgent({});
locating.addMessage({ id: "t1", role: "tool", toolCallId: "c1", content: "Rome" });
const found = await locating.runAgent({});

const unknown = open("nowhere");
await unknown.runAgent({});

const restores = {
  talked: { types: restoredTypes, messages: restored, afterwards, all: restoring.messages },
  paid: { asksFor, newMessages: paid.newMessages, pending: deciding.pendingInterrupts },
  located: found.newMessages,
  unknown: unknown.messages,
};

const seen = {
  turns,
  talked: talking.messages,
  asked,
  located,
  later,
  messages: asking.messages,
  restores,
};
process.stdout.write(JSON.stringify(seen));
