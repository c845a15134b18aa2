/** Operators that go to other threads as JSON are found there by their names. */
import { globSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { expect, it } from 'vitest';
import { chainOperatorFrom } from '../../operators/pipeline/operator-chain.ts';

const root = resolve(import.meta.dirname, '../..');
const files = globSync('operators/**/*.ts', { cwd: root }).sort();
const classes = files
  .flatMap((file) => readFileSync(join(root, file), 'utf8').split(/^(?=export class )/m))
  .filter((text) => /^export class .*(RowOperator|RowFilter|Operator) {/.test(text))
  .filter((text) => /^ {2}portable\(\)|^ {4}super\((?!\))/m.test(text));
const names = classes.map((text) => /readonly name(?:: string)? = '([\w-]+)'/.exec(text)?.[1] as string);

it('some operators are made from their JSON', () => expect(names.length).toBeGreaterThan(12));

it.each(names)('%s is made from its JSON', async (name) => {
  // The JSON has no more than the name: what the operator misses in it is another error.
  const made = chainOperatorFrom({ operator: name }).catch((error: unknown) => error);
  expect(String(await made)).not.toContain('no operator has the name');
});

it('operators of other names are refused', async () => {
  await expect(chainOperatorFrom({ operator: 'my-split' })).rejects.toThrow(
    'no operator has the name my-split',
  );
});
