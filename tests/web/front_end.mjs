// Uses the chat box of the examples in a page, as a person does, and writes what the page shows.
//
// Arguments: a folder with the npm packages and `chat_box.mjs`, the address of the routes.

import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [folder, api] = process.argv.slice(2);
const require = createRequire(`${folder}/package.json`);
const { Window } = require("happy-dom");

const page = new Window({ url: "http://localhost/" });
globalThis.window = page;
globalThis.document = page.document;
globalThis.IS_REACT_ACT_ENVIRONMENT = false;

const { createElement } = require("react");
const { createRoot } = require("react-dom/client");
const { ChatBox, loadMessages } = await import(pathToFileURL(`${folder}/chat_box.mjs`));

const settings = { api, id: "c1", headers: { authorization: "Bearer ada" } };
let asked = 0;
const tools = {
  locate: async () => {
    asked += 1;
    return "Rome";
  },
};

async function until(condition) {
  const giveUpAt = Date.now() + 20_000;
  while (!condition()) {
    if (Date.now() > giveUpAt) throw new Error(`gave up: ${condition}\n${document.body.innerHTML}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

const find = (selector) => document.querySelector(selector);
const texts = () => [...document.querySelectorAll("li")].map((item) => item.textContent);
const isReady = () => find("section").getAttribute("aria-busy") === "false";

async function show() {
  document.body.innerHTML = "<main></main>";
  const root = createRoot(find("main"));
  const history = await loadMessages(settings);
  root.render(createElement(ChatBox, { ...settings, history, tools }));
  await until(() => find("input"));
  return root;
}

async function say(text) {
  const input = find("input");
  const set = Object.getOwnPropertyDescriptor(page.HTMLInputElement.prototype, "value").set;
  set.call(input, text);
  input.dispatchEvent(new page.Event("input", { bubbles: true }));
  await until(() => find("input").value === text);
  find("form").dispatchEvent(new page.Event("submit", { bubbles: true, cancelable: true }));
}

const seen = {};
let root = await show();
await say("Hello");
await until(() => texts().length === 2 && isReady());
seen.sent = texts();

find("button[name=again]").click();
await until(() => isReady() === false || texts().length === 1);
await until(() => texts().length === 2 && isReady());
seen.again = texts();

await say("Where am I?");
await until(() => texts().length === 4 && texts()[3].includes("Rome") && isReady());
seen.located = { texts: texts(), asked };

await say("Count slowly");
await until(() => texts().length === 6 && texts()[5].includes("1 "));
root.unmount();
root = await show();
await until(() => texts().length === 6 && texts()[5].includes("2 "));
seen.resumed = texts()[5].startsWith("0 1 2 ");

find("button[name=stop]").click();
await until(isReady);
seen.alert = find("[role=alert]")?.textContent ?? null;
root.unmount();
root = await show();
await until(() => texts().length === 6);
seen.reloaded = { texts: texts().slice(0, 5), isStopped: texts()[5].startsWith("0 1 ") };
root.unmount();

process.stdout.write(JSON.stringify(seen));
process.exit(0);
