import { globSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { expect, it } from 'vitest';

const root = resolve(import.meta.dirname, '../..');

it('no source runs a text as code', () => {
  const folders = ['api', 'cli', 'connectors', 'cpu', 'engine', 'gpu', 'operators', 'synthetic', 'examples'];
  const files = [...globSync(`{${folders}}/**/*.{ts,cts}`, { cwd: root }), 'index.ts', 'require.cts'];
  expect(files.length).toBeGreaterThan(500);
  const found = files.filter((file) =>
    /\beval\(|\beval: true|\bnew Function\(/.test(readFileSync(join(root, file), 'utf8')),
  );
  expect(found).toEqual([]);
});
