/** The peak of resident memory that commands report. */
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';

const MiB = 2 ** 20;
const file = fileURLToPath(new URL('../../cli/report/training-report.ts', import.meta.url));

/** The peak of a process that has touched `mebibytes` of memory. */
function peakOf(mebibytes: number): number {
  const code = `
    import { peakMemoryBytes } from ${JSON.stringify(file)};
    Buffer.alloc(${mebibytes} * 2 ** 20, 1);
    console.log(peakMemoryBytes());`;
  return Number(
    spawnSync(process.execPath, ['--input-type=module', '-e', code], { encoding: 'utf8' }).stdout,
  );
}

it('has the memory that the process has given back', () => {
  expect(peakOf(300)).toBeGreaterThan(300 * MiB);
});

it.runIf(process.platform === 'linux')('is without the memory of the process that started it', () => {
  const held = Buffer.alloc(500 * MiB, 1);
  const peak = peakOf(0);
  expect(peak).toBeGreaterThan(20 * MiB);
  expect(peak).toBeLessThan(held.length / 2);
});
