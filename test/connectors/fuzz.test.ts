import { join } from 'node:path';
import { expect, test } from 'vitest';
import { flipCase, fuzzCase, fuzzKinds, fuzzTarget } from '../support/damage/fuzz-targets.ts';
import { isDeep } from '../support/deep.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

// A sample of the cases of npm run torture.
const cases = isDeep
  ? { parquet: 100, csv: 300, ndjson: 300, arrow: 300, model: 60 }
  : { parquet: 20, csv: 40, ndjson: 80, arrow: 40, model: 10 };

/** Flips of one bit that were found: units, scales and widths that Arrow does not have, a date64 beyond safe integers. */
const foundFlips: Readonly<Record<string, readonly number[]>> = { arrow: [31548, 931708, 2022698, 3122800] };

/** Cases that were found to end in an error of another library. */
const found: Readonly<Record<string, readonly number[]>> = { arrow: [514285913, 340349812, 340349831] };

test.each(fuzzKinds)('damaged files are read or refused with a message: %s', async (kind) => {
  const folder = join(temporaryFolder(), kind);
  const target = await fuzzTarget(kind, folder);
  const results = new Set<string>();
  const numbers = [...Array(cases[kind]).keys(), ...(found[kind] ?? [])];
  for (const [run, number] of [
    ...numbers.map((number) => [fuzzCase, number] as const),
    ...(foundFlips[kind] ?? []).map((number) => [flipCase, number] as const),
  ]) {
    const outcome = await run(target, folder, number);
    expect('found' in outcome ? `case ${number}: ${outcome.found}` : outcome.result).toMatch(
      /^(read|refused)$/,
    );
    if ('result' in outcome) results.add(outcome.result);
  }
  // All of a model has checksums.
  expect([...results].sort()).toEqual(kind === 'model' ? ['refused'] : ['read', 'refused']);
  expect(process.memoryUsage.rss()).toBeLessThan(10 ** 9);
});

test('undamaged, every seed is read', async () => {
  for (const kind of fuzzKinds) {
    const folder = join(temporaryFolder(), kind);
    const { seeds, read } = await fuzzTarget(kind, folder);
    for (const [name, bytes] of seeds) await read(folder, name, bytes);
  }
});
