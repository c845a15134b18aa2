import { spawnSync } from 'node:child_process';
import { expect, test } from 'vitest';

/** Runs code in a new process. Its file table has the size that the parent's open files require. */
function tableAfter(threads: number): readonly [before: number | undefined, after: number | undefined] {
  const code = `
    const { makeRoomForFiles, tableSize } = await import(${JSON.stringify(new URL('../../../api/devices/file-table.ts', import.meta.url).href)});
    const before = tableSize();
    makeRoomForFiles(${threads});
    for (let waits = 0; waits < 6000 && tableSize() < 6 * ${threads}; waits++) await new Promise((resolve) => setTimeout(resolve, 10));
    console.log(JSON.stringify([before ?? null, tableSize() ?? null]));`;
  const { stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '--eval', code], {
    encoding: 'utf8',
  });
  expect(stderr.replace(/.*Warning.*\n|\(Use.*\n/g, '')).toBe('');
  const [before, after] = JSON.parse(stdout) as (number | null)[];
  return [before ?? undefined, after ?? undefined];
}

test.skipIf(process.platform !== 'linux')(
  'the table of open files has room for those of many threads before they begin',
  () => {
    const [before, after] = tableAfter(150);
    expect(before).toBeGreaterThanOrEqual(64);
    expect(after).toBeGreaterThanOrEqual(6 * 150);
  },
);

test.skipIf(process.platform !== 'linux')('a table with room stays as it is', () => {
  const [before, after] = tableAfter(1);
  expect(after).toBe(before);
});
