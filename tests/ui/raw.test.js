// @ts-check
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  batchOf,
  eventsOf,
  kindOf,
  partsOf,
  sizeWords,
  textOf,
} from "../../src/sightline/ui/views/request/core/raw.js";

const encode = (/** @type {string} */ text) => new TextEncoder().encode(text);

test("a body is shown as what it is", () => {
  const cases = /** @type {[string, Uint8Array, boolean, string][]} */ ([
    ["application/json", encode('{"a":1}'), true, "json"],
    ["", encode(" [1]"), true, "json"],
    ["application/json", encode('{"a":'), false, "text"],
    ["application/json", encode("{broken"), true, "text"],
    ["text/html", encode("<script>alert(1)</script>"), true, "text"],
    ["text/event-stream", encode("data: 1\n\n"), true, "events"],
    ["image/png", new Uint8Array([137, 80]), true, "picture"],
    ["image/png", new Uint8Array([137, 80]), false, "binary"],
    ["image/svg+xml", encode("<svg onload='x'/>"), true, "text"],
    ["audio/mpeg", new Uint8Array([255]), true, "audio"],
    ["audio/mpeg", new Uint8Array([255]), false, "binary"],
    ["application/octet-stream", new Uint8Array([0, 1]), true, "binary"],
    ["application/octet-stream", new Uint8Array([255, 254]), true, "binary"],
    ["multipart/form-data; boundary=x", encode("--x"), true, "form"],
    ["multipart/form-data", encode("--x"), true, "text"],
  ]);
  for (const [type, data, isWhole, kind] of cases) assert.equal(kindOf(type, data, isWhole), kind, type);
});

test("half a character at the end of what is kept is no reason to show nothing", () => {
  assert.equal(textOf(encode("aé").subarray(0, 2), false), "a");
  assert.equal(textOf(encode("aé").subarray(0, 2), true), null);
});

test("each line of a batch file is a request", () => {
  const lines = ['{"custom_id":"a","method":"POST","url":"/v1/responses","body":{"model":"m"}}',
    '{"custom_id":"b","body":{"model":"n"}}'].join("\n"); // prettier-ignore
  assert.deepEqual(batchOf(lines + "\n"), [
    { id: "a", title: "POST /v1/responses · m", text: '{"model":"m"}' },
    { id: "b", title: "n", text: '{"model":"n"}' },
  ]);
  const results = '{"custom_id":"a","response":{"status_code":200,"body":{"model":"m"}}}';
  assert.deepEqual(batchOf(results)?.[0].title, "m · 200");
  const anthropic = JSON.stringify({ requests: [{ custom_id: "c", params: { model: "claude" } }] }, null, 2);
  assert.deepEqual(batchOf(anthropic)?.[0].title, "claude");
  const google = '{"key":"k","request":{"contents":[]}}';
  assert.equal(batchOf(google)?.[0].id, "k");
  for (const other of ["", "{}", '{"a":1}\n{"b":2}', "text", '{"custom_id":"a"}', "[1]", '{"custom_id":"a"']) {
    assert.equal(batchOf(other), null, other);
  }
});

test("the parts of a form are found, and what is cut off at its end is not", () => {
  const form = [
    '--B\r\ncontent-disposition: form-data; name="purpose"\r\n\r\nbatch\r\n',
    '--B\r\ncontent-disposition: form-data; name="file"; filename="a.bin"\r\ncontent-type: x/y\r\n\r\n',
  ].join("");
  const data = new Uint8Array([...encode(form), 0, 255, 13, 10, ...encode("--B--\r\n")]);
  const parts = partsOf('multipart/form-data; boundary="B"', data);
  assert.deepEqual(
    parts.map(({ name, file, type, data: inner }) => [name, file, type, [...inner]]),
    [
      ["purpose", "", "", [...encode("batch")]],
      ["file", "a.bin", "x/y", [0, 255]],
    ],
  );
  assert.equal(partsOf("multipart/form-data; boundary=B", data.subarray(0, data.length - 9)).length, 1);
});

test("sizes have words", () => {
  assert.deepEqual([0, 1023, 1024, 20480, 3 << 20].map(sizeWords), [
    "0 bytes",
    "1023 bytes",
    "1.0 KiB",
    "20 KiB",
    "3.0 MiB",
  ]);
});

test("the events of a stream have their names and their data", () => {
  const text = 'event: a\r\ndata: {"x":1}\r\n\r\ndata: {"event_type":"b"}\n\n: ping\n\ndata: 1\ndata: 2\n\n';
  assert.deepEqual(eventsOf(text), [
    { name: "a", text: '{"x":1}' },
    { name: "b", text: '{"event_type":"b"}' },
    { name: "", text: "1\n2" },
  ]);
});
