// Reads a UI message stream from standard input as a chat client does, and writes what it makes of
// it: `{message, errors, invalid, last}`.
//
// Arguments: the folder with the npm packages, the version of `ai`, the message so far as JSON.

import { createRequire } from "node:module";
import { Readable } from "node:stream";

const require = createRequire(`${process.argv[2]}/package.json`);
const { parseJsonEventStream, readUIMessageStream, uiMessageChunkSchema } = require(process.argv[3] === "6" ? "ai-6" : "ai");

const seen = { message: null, errors: [], invalid: [], last: null };
const earlier = process.argv[4] ? JSON.parse(process.argv[4]) : undefined;

const chunks = parseJsonEventStream({
  stream: Readable.toWeb(process.stdin),
  schema: uiMessageChunkSchema,
}).pipeThrough(
  new TransformStream({
    transform(parsed, controller) {
      if (!parsed.success) {
        seen.invalid.push(parsed.rawValue);
        return;
      }
      seen.last = parsed.value.type;
      controller.enqueue(parsed.value);
    },
  }),
);

const messages = readUIMessageStream({
  message: earlier,
  stream: chunks,
  onError: (error) => seen.errors.push(error.message),
});
for await (const message of messages) seen.message = message;

process.stdout.write(JSON.stringify(seen));
