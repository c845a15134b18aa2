import { execFileSync, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  appendFileSync,
  copyFileSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { CheckpointFolder } from '../../../connectors/checkpoint/checkpoint-folder.ts';
import { ownOwner } from '../../../connectors/output/temporaries.ts';
import { DataError, UsageError } from '../../../engine/errors.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const above = temporaryFolder();

let path: string;
let folders = 0;
beforeEach(() => {
  path = join(above, String(folders++));
});

const matrices = { users: Float32Array.from([1, 2, 3, 4]), 'users-bias': Float32Array.from([0.5, -0.5]) };
const lengths = { users: 4, 'users-bias': 2 };

async function within<Result>(work: (folder: CheckpointFolder) => Promise<Result>): Promise<Result> {
  const folder = await CheckpointFolder.open(path);
  try {
    return await work(folder);
  } finally {
    await folder.close();
  }
}

/** The matrices of a checkpoint in memory. */
const readAll = (iteration: number, expected: Readonly<Record<string, number>>) =>
  within(async (folder) => {
    const stored = await folder.matrices(await folder.read(iteration), expected);
    return Object.fromEntries(
      Object.entries(stored).map(([name, matrix]) => [name, matrix.read(0, matrix.length)]),
    );
  });
const read = (iteration = 2) => readAll(iteration, lengths);
const one = () => join(path, 'checkpoint-00000002');

/** Writes the state anew, with its checksum. */
function restate(change: object): void {
  const state = `${JSON.stringify({ ...(JSON.parse(readFileSync(join(one(), 'checkpoint.json'), 'utf8')) as object), ...change })}\n`;
  writeFileSync(join(one(), 'checkpoint.json'), state);
  const sums = readFileSync(join(one(), 'SHA256SUMS'), 'utf8').replace(
    /.*checkpoint.json/,
    `${createHash('sha256').update(state).digest('hex')}  checkpoint.json`,
  );
  writeFileSync(join(one(), 'SHA256SUMS'), sums);
}

describe('a folder of checkpoints', () => {
  it.each([
    ['all matrices', 24, ['users', 'users-bias']],
    ['the first matrix', 23, ['users']],
    ['a small matrix', 15, ['users-bias']],
    ['no matrix', 7, []],
  ])('reads %s once where memory holds its numbers meanwhile', async (_, keptBytes, once) => {
    await within((folder) => folder.write(2, { note: 'state' }, matrices));
    const stored = await within(async (folder) => folder.matrices(await folder.read(2), lengths, keptBytes));
    for (const [name, values] of Object.entries(matrices)) {
      const later = new Float32Array(values.length);
      writeFileSync(join(one(), `${name}-00000.f32`), later);
      expect(stored[name].read(1, 2)).toEqual(Float32Array.of(0));
      expect(stored[name].read(0, values.length)).toEqual(once.includes(name) ? values : later);
      expect(stored[name].read(0, values.length)).toEqual(later);
    }
  });

  it('gives back what was written, in files that other programs read', async () => {
    await within((folder) => folder.write(2, { note: 'state' }, matrices));
    expect(await read()).toEqual(matrices);
    expect(readdirSync(path)).toEqual(['checkpoint-00000002']);
    expect(readdirSync(one()).sort()).toEqual([
      'SHA256SUMS',
      'checkpoint.json',
      'users-00000.f32',
      'users-bias-00000.f32',
    ]);
    expect(readFileSync(join(one(), 'users-00000.f32'))).toEqual(Buffer.from(matrices.users.buffer));
    if (process.platform === 'linux')
      expect(
        execFileSync('sha256sum', ['--check', 'SHA256SUMS'], { cwd: one(), encoding: 'utf8' }).match(
          /: OK$/gm,
        ),
      ).toHaveLength(3);
  });

  it('writes a matrix in parts as the whole, file by file', async () => {
    const values = new Float32Array((1 << 25) + 5);
    for (let i = 0; i < values.length; i += 1001) values[i] = i;
    const cuts = [0, 3, 3, 1 << 24, (1 << 25) + 2, values.length];
    await within((folder) =>
      folder.write(2, {}, { users: cuts.slice(1).map((to, part) => values.subarray(cuts[part], to)) }),
    );
    const found = await readAll(2, { users: values.length });
    expect(Buffer.compare(Buffer.from(found.users.buffer), Buffer.from(values.buffer))).toBe(0);
  });

  it('keeps the last two, without those beyond the one that is written', async () => {
    await within(async (folder) => {
      for (const iteration of [2, 4, 6]) await folder.write(iteration, {}, matrices);
      expect(await folder.iterations()).toEqual([6, 4]);
      await folder.write(5, {}, matrices);
      expect(await folder.iterations()).toEqual([5, 4]);
      await folder.write(5, { again: true }, matrices);
      expect((await folder.read(5)).state.again).toBe(true);
      await folder.keep(4);
      expect(await folder.iterations()).toEqual([4]);
    });
  });

  it('clears what a killed run has left, and nothing else', async () => {
    const dead = spawnSync(process.execPath, ['-e', '']).pid;
    const here = ownOwner().space;
    await within((folder) => folder.write(2, {}, matrices));
    for (const name of [
      `.checkpoint-00000004.tmp-${here}-${dead}-1-1`,
      `.checkpoint-00000002.old-0123456789ab-${dead}-1-2`,
      'notes',
      '.hidden',
    ])
      mkdirSync(join(path, name));
    for (const name of [
      `.lock.tmp-${here}-${dead}-1-3`,
      `.lock.0123456789ab.tmp-${here}-${dead}-1-4`,
      'lock.0123456789ab',
    ])
      writeFileSync(join(path, name), '');
    expect(await within((folder) => folder.iterations())).toEqual([2]);
    expect(readdirSync(path).sort()).toEqual(['.hidden', 'checkpoint-00000002', 'notes']);
  });

  it('is gone again where it was made and nothing was written', async () => {
    await within(async () => expect(readdirSync(path)).toEqual(['lock']));
    expect(readdirSync(above)).not.toContain(path);
    expect(() => readdirSync(path)).toThrow('ENOENT');
  });

  it('is refused where it is a file', async () => {
    writeFileSync(path, '');
    await expect(CheckpointFolder.open(path)).rejects.toThrow(UsageError);
    await expect(CheckpointFolder.open(join(path, 'below'))).rejects.toThrow(
      /checkpointDir .* is not a folder/,
    );
  });

  it('is refused without room for its checkpoints, with the bytes', async () => {
    await within(async (folder) => {
      await folder.requireRoom(1000, 3);
      await expect(folder.requireRoom(2 ** 60, 3)).rejects.toThrow(
        /^plan: checkpoints need .* more, and .* are free/,
      );
    });
  });
});

describe('a checkpoint is refused with the file that is wrong', () => {
  beforeEach(() => within((folder) => folder.write(2, {}, matrices)));

  it.each<[name: string, damage: () => void, message: RegExp]>([
    [
      'a changed byte of a part',
      () => writeFileSync(join(one(), 'users-00000.f32'), Buffer.alloc(16, 1)),
      /its checksum is not the one in SHA256SUMS .*users-00000\.f32/,
    ],
    [
      'a part that is too short',
      () => truncateSync(join(one(), 'users-00000.f32'), 8),
      /it has 8 bytes in place of 16 .*users-00000\.f32/,
    ],
    [
      'a part that is missing',
      () => rmSync(join(one(), 'users-bias-00000.f32')),
      /no such file or folder .*users-bias-00000\.f32/,
    ],
    [
      'a changed state',
      () => appendFileSync(join(one(), 'checkpoint.json'), ' '),
      /its checksum .*checkpoint\.json/,
    ],
    ['no checksums', () => rmSync(join(one(), 'SHA256SUMS')), /no such file .*SHA256SUMS/],
    [
      'a checksum of a path',
      () => appendFileSync(join(one(), 'SHA256SUMS'), `${'0'.repeat(64)}  ../../users-00000.f32\n`),
      /a line is not the checksum .*SHA256SUMS/,
    ],
    [
      'a checksum of an absolute path',
      () => appendFileSync(join(one(), 'SHA256SUMS'), `${'0'.repeat(64)}  /etc/hostname\n`),
      /a line is not the checksum .*SHA256SUMS/,
    ],
    [
      'another format',
      () => restate({ format: 9 }),
      /its format is 9, and this release reads 2 .*checkpoint\.json/,
    ],
    ['no matrices', () => restate({ matrices: null }), /it has no iteration and lengths of matrices/],
    [
      'a matrix of another length',
      () => restate({ matrices: { users: 2 ** 40, 'users-bias': 2 } }),
      /the matrix users has 1099511627776 numbers, and 4 belong there/,
    ],
    [
      'a matrix with a path for a name',
      () => restate({ matrices: { ...lengths, '../x': 2 } }),
      /the matrix x has 2 numbers, and none belong there/,
    ],
    [
      'a folder in the place of a part',
      () => [rmSync(join(one(), 'users-00000.f32')), mkdirSync(join(one(), 'users-00000.f32'))],
      /damaged or foreign: this is a folder .*users-00000\.f32/,
    ],
  ])('%s', async (_, damage, message) => {
    damage();
    await expect(read()).rejects.toThrow(DataError);
    await expect(read()).rejects.toThrow(message);
  });

  it('a link out of the folder, even to the right bytes', async ({ skip }) => {
    if (process.platform === 'win32') return skip('links need rights there');
    const outside = join(above, 'outside.f32');
    copyFileSync(join(one(), 'users-00000.f32'), outside);
    rmSync(join(one(), 'users-00000.f32'));
    symlinkSync(outside, join(one(), 'users-00000.f32'));
    await expect(read()).rejects.toThrow(/it is a link .*users-00000\.f32/);
  });

  it('a link to a whole checkpoint is none', async ({ skip }) => {
    if (process.platform === 'win32') return skip('links need rights there');
    renameSync(one(), join(above, 'moved'));
    symlinkSync(join(above, 'moved'), one());
    expect(await within((folder) => folder.iterations())).toEqual([]);
  });
});
