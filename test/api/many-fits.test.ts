import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { expect, it } from 'vitest';

it('hundreds of small fits in one session take no more memory than the first ones', () => {
  const output = execFileSync(
    process.execPath,
    [join(import.meta.dirname, '../../scripts/torture/many-fits.ts'), '300'],
    { encoding: 'utf8' },
  );
  const { fits, early, late } = JSON.parse(output) as {
    readonly fits: number;
    readonly early: number;
    readonly late: number;
  };
  expect(fits).toBe(300);
  // MiB of the whole process; buffers of a million rows for each fit came to 1,300.
  expect(late).toBeLessThan(600);
  expect(late - early).toBeLessThan(300);
});
