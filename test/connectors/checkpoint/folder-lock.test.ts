import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { FolderLock } from '../../../connectors/checkpoint/folder-lock.ts';
import { ownOwner } from '../../../connectors/output/temporaries.ts';
import { UsageError } from '../../../engine/errors.ts';

let folder: string;
const made: string[] = [];
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'factorflow-lock-'));
  made.push(folder);
});
afterAll(() => made.forEach((path) => rmSync(path, { recursive: true })));

const file = () => join(folder, 'lock');
const holds = (holder: object, secondsAgo = 0) => {
  const { start, space } = ownOwner();
  const since = '2026-01-01T00:00:00.000Z';
  const own = { process: process.pid, start, host: 'here', machine: space, since };
  writeFileSync(file(), `${JSON.stringify({ ...own, ...holder })}\n`);
  const then = new Date(Date.now() - 1000 * secondsAgo);
  utimesSync(file(), then, then);
};

/** The number of a process that has ended. */
const endedProcess = () => spawnSync(process.execPath, ['-e', '']).pid;

describe('a folder', () => {
  it('is held by one at a time, and free afterwards', async () => {
    const lock = await FolderLock.take(folder);
    expect(JSON.parse(readFileSync(file(), 'utf8'))).toMatchObject({
      process: process.pid,
      machine: ownOwner().space,
    });
    const second = FolderLock.take(folder);
    await expect(second).rejects.toThrow(UsageError);
    await expect(second).rejects.toThrow(
      new RegExp(
        `^the folder is in use by process ${process.pid} on this machine, since 20.*lock\\). Wait until it has ended, or give another folder$`,
      ),
    );
    await lock.leave();
    expect(readdirSync(folder)).toEqual([]);
    await (await FolderLock.take(folder)).leave();
  });

  it('is taken over from a process that has ended, and from an earlier one of the same number', async () => {
    for (const holder of [{ process: endedProcess() }, ...(ownOwner().start === 0 ? [] : [{ start: 1 }])]) {
      holds(holder);
      const lock = await FolderLock.take(folder);
      expect(JSON.parse(readFileSync(file(), 'utf8'))).toMatchObject({
        process: process.pid,
        start: ownOwner().start,
      });
      await lock.leave();
      expect(readdirSync(folder)).toEqual([]);
    }
  });

  it('goes to one of those that take it over at the same time', async () => {
    const dead = endedProcess();
    for (let round = 0; round < 6; round++) {
      holds({ process: dead, since: `round ${round}` });
      const taken = await Promise.allSettled(Array.from({ length: 8 }, () => FolderLock.take(folder)));
      expect(
        taken.flatMap((one) =>
          one.status === 'rejected' && !(one.reason instanceof UsageError) ? [one.reason] : [],
        ),
      ).toEqual([]);
      expect(taken.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
      await Promise.all(taken.map((one) => one.status === 'fulfilled' && one.value.leave()));
      expect(readdirSync(folder)).toEqual([]);
    }
  });

  it('is taken over after a process that was killed while it took it over', async () => {
    const dead = endedProcess();
    holds({ process: dead });
    const text = readFileSync(file(), 'utf8');
    writeFileSync(
      `${file()}.${createHash('sha256').update(text).digest('hex').slice(0, 12)}`,
      text.replace('"here"', '"there"'),
    );
    const lock = await FolderLock.take(folder);
    expect(readdirSync(folder)).toEqual(['lock']);
    await lock.leave();
  });

  it('is left to a process of another machine until that has given no sign of life for a minute', async () => {
    holds({ machine: '0123456789ab', host: 'node-7' }, 50);
    await expect(FolderLock.take(folder)).rejects.toThrow(
      /in use by process \d+ on node-7, where it was seen \d+ s ago.*a run that was killed there is replaced after 60 s$/,
    );
    holds({ machine: '0123456789ab', host: 'node-7' }, 70);
    const lock = await FolderLock.take(folder);
    expect(JSON.parse(readFileSync(file(), 'utf8'))).toMatchObject({ process: process.pid });
    await lock.leave();
  });

  it.each(['', 'not JSON', '{"process":-1}', '{"process":1}', 'null'])(
    'is not taken from a lock that cannot be read: %j',
    async (text) => {
      writeFileSync(file(), text);
      await expect(FolderLock.take(folder)).rejects.toThrow(
        /the lock of the folder cannot be read .*Remove it where no run uses the folder/,
      );
      expect(readFileSync(file(), 'utf8')).toBe(text);
    },
  );

  it('keeps the lock of another holder when the first leaves late', async () => {
    const lock = await FolderLock.take(folder);
    await lock.requireHeld();
    holds({ machine: '0123456789ab' });
    await expect(lock.requireHeld()).rejects.toThrow('another run has taken the folder over');
    await lock.leave();
    expect(existsSync(file())).toBe(true);
  });
});
