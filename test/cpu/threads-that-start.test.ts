import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, it } from 'vitest';
import { ThreadPool } from '../../engine/threads/thread-pool.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const folder = temporaryFolder();

function moduleOf(name: string, code: string): URL {
  writeFileSync(join(folder, name), code);
  return pathToFileURL(join(folder, name));
}

it('a thread imports its module and never requires it', async () => {
  const module = moduleOf(
    'stack.mjs',
    'const { stack } = new Error();\n' +
      'export default () => ({ outcome: { values: {} }, start: 0, milliseconds: 0, stack });\n',
  );
  const pool = new ThreadPool(module, 1, {});
  const reply = (await pool.run(() => null)) as unknown as { readonly stack: string };
  await pool.close();
  // Node 22.12 aborts when a thread ends while it requires an ES module.
  expect(reply.stack).toContain('stack.mjs');
  expect(reply.stack).not.toMatch(/require|loadESMFromCJS/i);
});

it('a module that fails to load ends the thread with its own error', async () => {
  const { promise, resolve } = Promise.withResolvers<unknown>();
  const crashed = (cause: unknown) => {
    resolve(cause);
    return cause as Error;
  };
  const pool = new ThreadPool(
    moduleOf('fails.mjs', "throw new Error('no such table');\n"),
    1,
    {},
    { crashed },
  );
  expect(String(await promise)).toContain('no such table');
  await pool.close();
});

it('a pool is closed while its threads start', async () => {
  const module = moduleOf('slow.mjs', 'await new Promise((resolve) => setTimeout(resolve, 50));\n');
  for (let round = 0; round < 5; round++) await new ThreadPool(module, 2, {}).close();
});

it('requests end with the error of a module that cannot be loaded', async () => {
  const pool = new ThreadPool(moduleOf('broken.mjs', "throw new Error('no such table');\n"), 2, {});
  // More requests than threads, so that some wait; then a request once no thread is left.
  const first = await Promise.allSettled(Array.from({ length: 5 }, () => pool.run(() => null)));
  const later = await Promise.allSettled([pool.run(() => null)]);
  expect([...first, ...later].map((ended) => ended.status === 'rejected' && String(ended.reason))).toEqual(
    Array(6).fill('Error: no such table'),
  );
  await pool.close();
});

it('a thread that ends as it loads, without an error, ends its requests', async () => {
  const pool = new ThreadPool(moduleOf('exits.mjs', 'process.exit(7);\n'), 1, {});
  const ended = await Promise.allSettled(Array.from({ length: 3 }, () => pool.run(() => null)));
  expect(ended.map(({ status }) => status)).toEqual(Array(3).fill('rejected'));
  await pool.close();
});

it.each([
  ['its file', new URL('absent.mjs', pathToFileURL(`${folder}/`))],
  ['a module that it imports', moduleOf('imports.mjs', "import './absent.mjs';\n")],
])('a thread without %s fails with advice', async (_, module) => {
  const pool = new ThreadPool(module, 1, {});
  await expect(pool.run(() => null)).rejects.toThrow(
    /^a thread cannot start: Cannot find module '.*absent.mjs'.* The installed package is incomplete/s,
  );
  await pool.close();
});
