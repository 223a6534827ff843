// Talks to the routes of an agent as chat clients do, and writes what the clients show as JSON.
//
// Arguments: the folder with the npm packages, the version of `ai`, the address of the routes, the
// reasons to finish that the agent is asked for.

import { createRequire } from "node:module";

const [folder, version, api, ...reasons] = process.argv.slice(2);
const require = createRequire(`${folder}/package.json`);
const {
  DefaultChatTransport,
  lastAssistantMessageIsCompleteWithApprovalResponses,
  lastAssistantMessageIsCompleteWithToolCalls,
} = require(version === "6" ? "ai-6" : "ai");
const { Chat } = require(version === "6" ? "ai-sdk-react-6" : "@ai-sdk/react");

let requests = 0;
const streams = [];

// What a stream says of its message: the ids of its `start` chunks and its reason to finish.
async function readStream(response) {
  const starts = [];
  let reason = null;
  for (const line of (await response.text()).split("\n")) {
    if (!line.startsWith("data: {")) continue;
    const chunk = JSON.parse(line.slice("data: ".length));
    if (chunk.type === "start") starts.push(chunk.messageId);
    if (chunk.type === "finish") reason = chunk.finishReason ?? null;
  }
  return { starts, reason };
}

function open(id, options = {}) {
  const errors = [];
  const chat = new Chat({
    id,
    transport: new DefaultChatTransport({
      api,
      headers: { "x-user": "ada" },
      fetch: async (...given) => {
        requests += 1;
        const response = await fetch(...given);
        if (response.headers.get("content-type")?.startsWith("text/event-stream")) {
          streams.push(readStream(response.clone()));
        }
        return response;
      },
    }),
    onError: (error) => errors.push(error.message),
    ...options,
  });
  chat.seen = errors;
  return chat;
}

const textOf = (message) =>
  (message?.parts ?? [])
    .filter((part) => part.type === "text")
    .map((part) => part.text)
    .join("");

const shown = (chat) => ({
  messages: chat.messages,
  texts: chat.messages.map(textOf),
  status: chat.status,
  errors: chat.seen,
});

async function until(condition) {
  const giveUpAt = Date.now() + 20_000;
  while (!condition()) {
    if (Date.now() > giveUpAt) throw new Error(`gave up: ${condition}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

const go = () => fetch(`${api}/go`, { method: "POST" });

const scenes = {
  async send() {
    const chat = open("send");
    await chat.sendMessage({ text: "hello" });
    await chat.sendMessage({ text: "again" });
    return shown(chat);
  },
  async repeat() {
    const first = open("repeat");
    const message = { id: "m1", role: "user", parts: [{ type: "text", text: "hello" }] };
    await first.sendMessage(message);
    const second = open("repeat");
    await second.sendMessage(message);
    return { first: shown(first), second: shown(second) };
  },
  async finish() {
    const results = {};
    for (const reason of reasons) {
      const ends = [];
      const onFinish = ({ finishReason, isError }) => void ends.push({ finishReason, isError });
      const chat = open(`finish-${reason}`, { onFinish });
      await chat.sendMessage({ text: `finish ${reason}` });
      results[reason] = { ...shown(chat), ends };
    }
    return results;
  },
  async regenerate() {
    const chat = open("regenerate");
    await chat.sendMessage({ text: "hello" });
    const before = chat.messages.at(-1).id;
    await chat.regenerate();
    return { ...shown(chat), before };
  },
  async edit() {
    const chat = open("edit");
    await chat.sendMessage({ text: "hello" });
    await chat.sendMessage({ text: "more" });
    await chat.sendMessage({ text: "changed", messageId: chat.messages[0].id });
    return shown(chat);
  },
  async toolOutput() {
    const sendAutomaticallyWhen = lastAssistantMessageIsCompleteWithToolCalls;
    const chat = open("tool", { sendAutomaticallyWhen });
    await chat.sendMessage({ text: "ask" });
    requests = 0;
    await chat.addToolOutput({ tool: "locate", toolCallId: "c1", output: "Rome" });
    await until(() => chat.status === "ready" && textOf(chat.messages.at(-1)).includes("Rome"));
    return { ...shown(chat), requests };
  },
  async toolOutputWithoutAnAnswer() {
    const sendAutomaticallyWhen = lastAssistantMessageIsCompleteWithToolCalls;
    const chat = open("silent", { sendAutomaticallyWhen });
    await chat.sendMessage({ text: "ask" });
    requests = 0;
    await chat.addToolOutput({ tool: "locate", toolCallId: "c1", output: "nowhere" });
    await until(() => chat.status === "ready" && requests > 0);
    await chat.sendMessage({ text: "hello" });
    return { ...shown(chat), requests };
  },
  async approval() {
    const sendAutomaticallyWhen = lastAssistantMessageIsCompleteWithApprovalResponses;
    const results = {};
    for (const approved of [true, false]) {
      const chat = open(`approval-${approved}`, { sendAutomaticallyWhen });
      await chat.sendMessage({ text: "pay" });
      const id = chat.messages.at(-1).parts.find((part) => part.approval).approval.id;
      requests = 0;
      await chat.addToolApprovalResponse({ id, approved });
      await until(() => chat.status === "ready" && requests > 0);
      results[approved] = { ...shown(chat), requests };
    }
    return results;
  },
  async resume() {
    const first = open("resume");
    const sending = first.sendMessage({ text: "hold" });
    await until(() => textOf(first.messages.at(-1)) === "one ");
    const second = open("resume", { messages: first.messages.slice(0, 1) });
    const resuming = second.resumeStream();
    await until(() => textOf(second.messages.at(-1)) === "one ");
    await go();
    await Promise.all([sending, resuming]);
    const third = open("resume", { messages: second.messages });
    await third.resumeStream();
    return { first: shown(first), second: shown(second), third: shown(third) };
  },
  async stop() {
    const chat = open("stop");
    const sending = chat.sendMessage({ text: "hold" });
    await until(() => textOf(chat.messages.at(-1)) === "one ");
    const answer = await fetch(`${api}/stop/stop`, {
      method: "POST",
      headers: { "content-type": "application/json", "x-user": "ada" },
      body: JSON.stringify({ messageId: chat.messages.at(-1).id }),
    });
    await sending;
    return { ...shown(chat), answer: await answer.json() };
  },
  async fail() {
    const chat = open("fail");
    await chat.sendMessage({ text: "fail" });
    return shown(chat);
  },
  async refuse() {
    const chat = open("a\u0000b");
    await chat.sendMessage({ text: "hello" });
    return shown(chat);
  },
};

const seen = {};
for (const [name, play] of Object.entries(scenes)) {
  streams.length = 0;
  seen[name] = await play();
  seen[name].streams = await Promise.all(streams);
}
process.stdout.write(JSON.stringify(seen));
