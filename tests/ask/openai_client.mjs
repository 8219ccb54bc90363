// The protocol's official client against the test server: what it cannot read, the server says wrongly.
// Usage: node openai_client.mjs URL KEY, where the package openai is installed.
import assert from "node:assert/strict";
import OpenAI from "openai";

const [baseURL, apiKey] = process.argv.slice(2);
const client = new OpenAI({ baseURL, apiKey, maxRetries: 2 });
const asked = (model, more = {}) => ({ model, messages: [{ role: "user", content: "hello" }], ...more });
const create = (...args) => client.chat.completions.create(asked(...args));

async function streamed(model, more = {}) {
  let content = "", finish = null, usage = null;
  const stream = await create(model, { stream: true, stream_options: { include_usage: true }, ...more });
  for await (const chunk of stream) {
    content += chunk.choices[0]?.delta?.content ?? "";
    finish = chunk.choices[0]?.finish_reason ?? finish;
    usage = chunk.usage ?? usage;
  }
  return { content, finish, usage };
}

const checks = {
  async "models are listed"() {
    const names = [];
    for await (const model of client.models.list()) names.push(model.id);
    assert(names.includes("tiny"));
  },
  async "a plain reply"() {
    const reply = await create("tiny");
    assert.equal(reply.object, "chat.completion");
    assert.equal(reply.choices[0].finish_reason, "stop");
    assert.match(reply.choices[0].message.content, /```cpp/);
    assert.equal(reply.usage.total_tokens, reply.usage.prompt_tokens + reply.usage.completion_tokens);
  },
  async "a streamed reply is the plain one"() {
    const plain = (await create("tiny")).choices[0].message.content;
    const stream = await streamed("tiny");
    assert.equal(stream.content, plain);
    assert.equal(stream.finish, "stop");
    assert(stream.usage.completion_tokens > 0);
  },
  async "unicode and much of it"() {
    assert.match((await streamed("unicode")).content, /Grüße, 世界, 🚀|nothing was asked/);
    assert((await streamed("slow")).content.length > 50);
  },
  async "a refusal"() {
    assert.match((await create("refusal")).choices[0].message.refusal, /can't help/);
  },
  async "no choice"() {
    assert.deepEqual((await create("empty")).choices, []);
  },
  async "cut off at the limit"() {
    assert.equal((await streamed("length")).finish, "length");
  },
  async "429 with Retry-After is tried again"() {
    const begin = Date.now();
    assert.match((await create("busy", { seed: 1 })).choices[0].message.content, /```cpp/);
    assert(Date.now() - begin >= 900);
  },
  async "500 is tried again"() {
    assert.match((await create("failing", { seed: 2 })).choices[0].message.content, /```cpp/);
  },
  async "errors are those of the client"() {
    await assert.rejects(create("no-such-model"), OpenAI.NotFoundError);
    await assert.rejects(create("too-long"), OpenAI.BadRequestError);
    const wrong = new OpenAI({ baseURL, apiKey: "wrong", maxRetries: 0 });
    await assert.rejects(wrong.chat.completions.create(asked("tiny")), OpenAI.AuthenticationError);
    await assert.rejects(client.chat.completions.create(asked("down"), { maxRetries: 0 }), OpenAI.InternalServerError);
  },
  async "an error within a stream is one"() {
    await assert.rejects(streamed("stream-error", { seed: 3 }), /upstream is gone/);
  },
  async "a connection that is cut is an error"() {
    await assert.rejects(streamed("cut", { seed: 4 }));
  },
  async "malformed JSON is an error"() {
    await assert.rejects(create("malformed", { seed: 5 }));
  },
};

let failed = 0;
for (const [name, check] of Object.entries(checks)) {
  try {
    await check();
    console.log(`ok      ${name}`);
  } catch (error) {
    failed += 1;
    console.log(`FAILED  ${name}: ${error?.stack ?? error}`);
  }
}
process.exit(failed > 0 ? 1 : 0);
