import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { scalePreset } from '../../synthetic/preset.ts';
import { findPreset } from '../../synthetic/presets.ts';
import { generateRatings } from '../../synthetic/ratings/rating-generator.ts';
import { buildRatingTables } from '../../synthetic/ratings/rating-tables.ts';

/**
 * The presets at about 20,000 ratings with seed 7: rows, and the beginning of the SHA-256 of all columns.
 * Data sets that people keep depend on these bits.
 */
const golden: readonly (readonly [string, number, string])[] = [
  ['movielens20m', 19929, '49fbf1c01b28275f'],
  ['netflix', 20088, 'e6fe11522873c2a5'],
  ['yahoomusic', 20011, '1ebfdef281af1d59'],
  ['hugewiki', 20000, '0c2e15648a7e005b'],
  ['movielens10m', 19981, 'fedfbdf478f6837a'],
  ['yahoor1', 20009, '56e7dc49c106f2b2'],
  ['yahoor4', 19997, 'ca8cd092d5dc6dce'],
  ['delicious', 19999, '9bcc169ac2011d42'],
];

describe('the rows of a preset and seed are those of the first release', () => {
  it.each(golden)('%s', (name, rows, digest) => {
    const preset = findPreset(name);
    const shape = scalePreset(preset, Math.min(1, 20_000 / (preset.train + preset.test)));
    const hash = createHash('sha256');
    let count = 0;
    for (const { part, batch } of generateRatings(buildRatingTables(shape, 7))) {
      count += batch.numRows;
      hash.update(part);
      for (const { values } of batch.data.children)
        hash.update(new Uint8Array(values.buffer, values.byteOffset, values.byteLength));
    }
    expect([count, hash.digest('hex').slice(0, 16)]).toEqual([rows, digest]);
  });
});
