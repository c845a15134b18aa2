import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { isDeep } from '../support/deep.ts';

const count = isDeep ? 300 : 120;

it('hundreds of small fits in one session take no more memory than the first ones', () => {
  const output = execFileSync(
    process.execPath,
    [join(import.meta.dirname, '../support/many-fits.ts'), '1', '', `${count}`],
    { encoding: 'utf8' },
  );
  const { counts, early, late } = JSON.parse(output) as {
    readonly counts: { readonly fits: number };
    readonly early: number;
    readonly late: number;
  };
  expect(counts.fits).toBe(count);
  // MiB of the whole process; buffers of a million rows for each of 300 fits came to 1,300.
  expect(late).toBeLessThan(600);
  expect(late - early).toBeLessThan(300);
});
