import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { spawnSync } from 'node:child_process';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { SpillFolder } from '../../../connectors/spill/spill-folder.ts';
import { CpuDevice } from '../../../cpu/device.ts';
import { DataError, UsageError } from '../../../engine/errors.ts';
import { type Partition, type PartitionRef, sharedArray } from '../../../engine/partition.ts';

const parent = mkdtempSync(join(tmpdir(), 'factorflow-spill-folder-'));
afterAll(() => rmSync(parent, { recursive: true }));

describe('a spill folder', () => {
  it('is made with its first file and goes with everything in it', async () => {
    const folder = new SpillFolder(parent);
    expect(readdirSync(parent)).toEqual([]);
    const [first, second] = [await folder.newFile(), await folder.newFile()];
    expect(first).not.toBe(second);
    writeFileSync(first, 'x');
    expect(readdirSync(parent)).toHaveLength(1);
    await folder.close();
    expect(readdirSync(parent)).toEqual([]);
    await folder.close();
  });

  it('makes the folder that it is given, which goes with it where it is empty', async () => {
    const folder = new SpillFolder(join(parent, 'made', 'here'));
    writeFileSync(await folder.newFile(), 'x');
    await folder.close();
    expect(readdirSync(join(parent, 'made'))).toEqual([]);
    const other = new SpillFolder(join(parent, 'made'));
    await other.open();
    writeFileSync(join(parent, 'made', 'note'), '');
    await other.close();
    expect(readdirSync(join(parent, 'made'))).toEqual(['note']);
    rmSync(join(parent, 'made'), { recursive: true });
  });

  it('is refused where nothing can be written', async ({ skip }) => {
    // The rights of a folder do not bind root, those of the kernel's own do.
    const own = process.getuid?.() !== 0;
    if (!own && process.platform !== 'linux') return skip('root can write to every folder here');
    const closed = own ? join(parent, 'closed') : '/sys/kernel';
    if (own) mkdirSync(closed, { mode: 0o500 });
    await expect(new SpillFolder(closed).open()).rejects.toThrow(
      /^spillDir .* cannot be written to \(E\w+\)/,
    );
    if (own) rmSync(closed, { recursive: true });
  });

  it('is refused where there is no folder', async () => {
    writeFileSync(join(parent, 'file'), '');
    for (const path of [join(parent, 'file'), join(parent, 'file', 'below')]) {
      await expect(new SpillFolder(path).open()).rejects.toThrow(/^spillDir .* is no folder/);
      await expect(new SpillFolder(path).open()).rejects.toBeInstanceOf(UsageError);
    }
    rmSync(join(parent, 'file'));
  });

  it('clears folders of processes that are no more, and leaves those of running ones and of others', async () => {
    const own = new SpillFolder(parent);
    const name = (await own.open()).split('/').at(-1) as string;
    const [, , host] = name.split('-');
    const dead = spawnSync(process.execPath, ['-e', '']).pid;
    // The number of a process that ended, the number of this one with another start, a host that is not this
    // one, no number.
    const gone = [
      `factorflow-spill-${host}-${dead}-1-0`,
      ...(process.platform === 'linux' ? [`factorflow-spill-${host}-${process.pid}-1-0`] : []),
    ];
    const kept = [`factorflow-spill-0123456789ab-${dead}-1-0`, `factorflow-spill-${host}-x-1-0`, 'notes'];
    for (const one of [...gone, ...kept]) {
      mkdirSync(join(parent, one));
      writeFileSync(join(parent, one, '0'), 'x');
    }
    const next = new SpillFolder(parent);
    const nextName = (await next.open()).split('/').at(-1) as string;
    expect(readdirSync(parent).sort()).toEqual([...kept, name, nextName].sort());
    await own.close();
    await next.close();
    for (const one of kept) rmSync(join(parent, one), { recursive: true });
  });
});

describe('partitions of a CPU device', () => {
  const ref = (name: string): PartitionRef => ({ name, partition: 0, version: 0 });
  const partition = (first: number): Partition => {
    const columns = {
      counts: sharedArray(Int32Array, 5),
      values: sharedArray(Float64Array, 3),
      codes: sharedArray(Uint16Array, 7),
      none: sharedArray(Uint8Array, 0),
    };
    for (const column of Object.values(columns))
      for (let i = 0; i < column.length; i++) column[i] = first + i;
    return { layout: 'numbers', rows: 5, columns };
  };

  it('come back from a file as they were; the file goes with the last of them', async () => {
    const folder = new SpillFolder(parent);
    const device = new CpuDevice({ threads: 1 });
    for (const [i, name] of ['a', 'b'].entries()) device.put(ref(name), partition(10 * i));
    const file = await folder.newFile();
    expect((await device.spill([ref('a'), ref('b')], file)).rows).toBe(10);
    expect(await device.fetch(ref('b'))).toEqual({
      ...partition(10),
      columns: Object.fromEntries(
        Object.entries(partition(10).columns).map(([name, column]) => [name, column.slice()]),
      ),
    });
    device.release(ref('a'));
    expect((await device.fetch(ref('b'))).rows).toBe(5);
    expect(existsSync(file)).toBe(true);
    device.release(ref('b'));
    await expect.poll(() => existsSync(file)).toBe(false);
    await device.close();
    await folder.close();
  });

  it('are not read from a file that another program changed', async () => {
    const folder = new SpillFolder(parent);
    const device = new CpuDevice({ threads: 1 });
    for (const change of [
      (file: string) => truncateSync(file, 20),
      (file: string) => writeFileSync(file, `other${readFileSync(file, 'latin1')}`, 'latin1'),
      (file: string) => rmSync(file),
    ]) {
      device.put(ref('a'), partition(0));
      const file = await folder.newFile();
      await device.spill([ref('a')], file);
      change(file);
      const failure = await device.fetch(ref('a')).then(
        () => undefined,
        (error: unknown) => error,
      );
      expect(failure).toBeInstanceOf(DataError);
      expect(failure).toMatchObject({ details: { phase: 'spill', file } });
      device.release(ref('a'));
    }
    await device.close();
    await folder.close();
  });
});
