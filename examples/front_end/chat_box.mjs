// A chat box for an agent behind `mount_chat`: it streams, resumes, stops, edits nothing away, and
// runs a tool of its own. `useChat` works as it is; only `stop` has to tell the server, too.
//
// npm install ai @ai-sdk/react react react-dom

import { useChat } from "@ai-sdk/react";
import { DefaultChatTransport, lastAssistantMessageIsCompleteWithToolCalls } from "ai";
import { createElement as h, useMemo, useState } from "react";

/** Return what was said in a chat before; nothing for a new one. */
export async function loadMessages({ api, id, headers }) {
  const response = await fetch(`${api}/history?id=${encodeURIComponent(id)}`, { headers });
  if (response.status === 404) return [];
  const page = await response.json();
  return page.items.filter((item) => item.status !== "pending").map((item) => item.message);
}

const textOf = (message) =>
  message.parts.filter((part) => part.type === "text").map((part) => part.text).join("");

export function ChatBox({ api, id, headers, history, tools = {} }) {
  const [text, setText] = useState("");
  const transport = useMemo(() => new DefaultChatTransport({ api, headers }), [api, headers]);
  const chat = useChat({
    id,
    messages: history,
    resume: true,
    transport,
    sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithToolCalls,
    async onToolCall({ toolCall }) {
      const run = tools[toolCall.toolName];
      if (!run) return;
      const output = await run(toolCall.input);
      // Not awaited: the answer that called the tool has to end first.
      chat.addToolOutput({ tool: toolCall.toolName, toolCallId: toolCall.toolCallId, output });
    },
  });

  const send = (event) => {
    event.preventDefault();
    chat.sendMessage({ text });
    setText("");
  };
  const stop = () =>
    fetch(`${api}/${encodeURIComponent(id)}/stop`, {
      method: "POST",
      headers: { ...headers, "content-type": "application/json" },
      body: "{}",
    });

  return h(
    "section",
    { "aria-busy": chat.status === "streaming" || chat.status === "submitted" },
    h(
      "ol",
      { role: "log" },
      chat.messages.map((message) =>
        h("li", { key: message.id, "data-role": message.role }, textOf(message)),
      ),
    ),
    chat.error && h("p", { role: "alert" }, chat.error.message),
    h(
      "form",
      { onSubmit: send },
      h("input", {
        "aria-label": "Message",
        value: text,
        onChange: (event) => setText(event.target.value),
      }),
      h("button", { type: "submit" }, "Send"),
      h("button", { type: "button", name: "again", onClick: () => chat.regenerate() }, "Again"),
      h("button", { type: "button", name: "stop", onClick: stop }, "Stop"),
    ),
  );
}
