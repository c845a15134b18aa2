import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, expect, it } from 'vitest';
import { ThreadPool } from '../../engine/threads/thread-pool.ts';

const folder = mkdtempSync(join(tmpdir(), 'factorflow-threads-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

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
