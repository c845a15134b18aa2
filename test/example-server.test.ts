/** The example of a web server: wrong requests are the client's errors, and closing answers what runs. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';

const scratch = mkdtempSync(join(tmpdir(), 'factorflow-example-server-'));
const file = join(import.meta.dirname, '../examples/08-serve-with-fastify.ts');
const server = spawn(process.execPath, [file], {
  env: { ...process.env, TMPDIR: scratch, PORT: '0' },
  stdio: ['ignore', 'pipe', 'inherit'],
});
const ended = once(server, 'exit');
let address = '';

beforeAll(async () => {
  for await (const chunk of server.stdout) {
    const found = /http:\/\/\S+/.exec(String(chunk));
    if (found === null) continue;
    [address] = found;
    break;
  }
});
afterAll(async () => {
  server.kill('SIGTERM');
  await ended;
  rmSync(scratch, { recursive: true, force: true });
});

const post = (body: string) =>
  fetch(`${address}/recommend?n=2`, {
    method: 'POST',
    body,
    headers: { 'content-type': 'application/json' },
  });

const wrong: Readonly<Record<string, string>> = {
  'no JSON': '{"ratings":',
  'no text': '',
  null: 'null',
  'a number': '7',
  'no ratings': '{}',
  'null as ratings': '{"ratings":null}',
  'a rating of null': '{"ratings":[null]}',
  'a rating of a number': '{"ratings":[5]}',
  'an item of null': '{"ratings":[{"item":null,"rating":3}]}',
  'an item of a list': '{"ratings":[{"item":[1],"rating":3}]}',
  'a rating as text': '{"ratings":[{"item":68646,"rating":"5"}]}',
  'a rating of 1e308': '{"ratings":[{"item":68646,"rating":1e308}]}',
  'a rating of 1e999': '{"ratings":[{"item":68646,"rating":1e999}]}',
  'a prototype': '{"__proto__":{"ratings":[]},"ratings":[]}',
  'deep lists': `{"ratings":${'['.repeat(9000)}${']'.repeat(9000)}}`,
  'too much': JSON.stringify({ ratings: 'x'.repeat(2 ** 21) }),
};

it.each(Object.keys(wrong))('answers a body with %s as a wrong request', async (name) => {
  const answer = await post(wrong[name]);
  expect([400, 413], await answer.clone().text()).toContain(answer.status);
  expect(await answer.json()).toEqual({ error: expect.stringMatching(/./) });
});

it('answers wrong paths so, and right requests after all of them', async () => {
  for (const path of [
    '/recommend/26?n=1e999',
    '/recommend/26?n=x',
    '/recommend/26?n=-1',
    '/similar/68646?n=0',
  ])
    expect((await fetch(`${address}${path}`)).status, path).toBe(400);
  const right = await post('{"ratings":[{"item":68646,"rating":10}]}');
  expect([right.status, ((await right.json()) as { items: unknown[] }).items.length]).toEqual([200, 2]);
});

it('answers the requests that it has taken when it is asked to end', async () => {
  const answers = Array.from({ length: 20 }, () => post('{"ratings":[{"item":68646,"rating":10}]}'));
  await answers[0];
  server.kill('SIGTERM');
  for (const answer of await Promise.allSettled(answers))
    if (answer.status === 'fulfilled') expect([200, 503]).toContain(answer.value.status);
  expect(await ended).toEqual([0, null]);
});
