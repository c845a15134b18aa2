/** Operators that go to other threads as JSON are found there by their names. */
import { globSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { expect, it } from 'vitest';
import { chainOperatorFrom } from '../../operators/pipeline/operator-chain.ts';

const root = resolve(import.meta.dirname, '../..');
const files = globSync('operators/**/*.ts', { cwd: root }).sort();
const texts = files.map((file) => [file, readFileSync(join(root, file), 'utf8')] as const);
const portable = texts.filter(([, text]) => /^ {2}portable\(\)/m.test(text));

it.each(portable)('%s is made from its JSON', async (_file, text) => {
  const name = /readonly name = '([\w-]+)'/.exec(text)?.[1];
  expect(name).toBeDefined();
  // The JSON has no more than the name: what the operator misses in it is another error.
  const made = chainOperatorFrom({ operator: name! }).catch((error: unknown) => error);
  expect(String(await made)).not.toContain('no operator has the name');
});

it('operators of other names are refused', async () => {
  await expect(chainOperatorFrom({ operator: 'my-split' })).rejects.toThrow(
    'no operator has the name my-split',
  );
});
