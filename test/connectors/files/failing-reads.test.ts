/** Disks that fail, and names that are not UTF-8, are errors of the data or of the call, with the file. */
import { copyFileSync, mkdtempSync, readdirSync, writeFileSync } from 'node:fs';
import fs from 'node:fs';
import { open } from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';
import { join, resolve } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { checkWritable } from '../../../api/output/check-output.ts';
import { ArrowSink } from '../../../connectors/arrow/arrow-sink.ts';
import { ArrowSource } from '../../../connectors/arrow/arrow-source.ts';
import { CheckpointFolder } from '../../../connectors/checkpoint/checkpoint-folder.ts';
import { resolveDataset } from '../../../connectors/files/dataset-path.ts';
import { fileProblem } from '../../../connectors/files/file-problem.ts';
import { openRandomAccess, readExactly } from '../../../connectors/files/random-access.ts';
import { firstBytes } from '../../../connectors/files/stored-bytes.ts';
import { atomicOutput } from '../../../connectors/output/atomic-output.ts';
import { ParquetSource } from '../../../connectors/parquet/parquet-source.ts';
import { SpillFolder } from '../../../connectors/spill/spill-folder.ts';
import { readSpilled } from '../../../cpu/read-spilled.ts';
import { writeSpilled } from '../../../cpu/write-spilled.ts';
import { DataError, UsageError } from '../../../engine/errors.ts';
import { sharedArray } from '../../../engine/partition.ts';
import { closeReader, readRegular } from '../../../engine/regular-file.ts';
import { makeOwnFolder } from '../../../gpu/probe/cache-folder.ts';
import { context } from '../parquet/parquet-testing.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const root = temporaryFolder();
let folder = '';
beforeEach(() => {
  folder = mkdtempSync(join(root, 'one-'));
});
afterEach(() => {
  vi.restoreAllMocks();
  vi.unstubAllEnvs();
  syncBuiltinESMExports();
});

const failure = () =>
  Object.assign(new Error('EIO: i/o error, read'), { code: 'EIO', errno: -5, syscall: 'read' });

const failSyncReads = () => {
  vi.spyOn(fs, 'readSync').mockImplementation(() => {
    throw failure();
  });
  syncBuiltinESMExports();
};

describe('a disk that fails is named with the file', () => {
  it('in each read of an Arrow file', async () => {
    const file = join(folder, 'ratings.arrow');
    const ratings = new ParquetSource(
      resolve(import.meta.dirname, '../../../examples/data/movietweetings-100k/ratings.parquet'),
    );
    await new ArrowSink(file).consume(await ratings.execute(context()), context());
    const handle = await open(file);
    const prototype = Object.getPrototypeOf(handle) as typeof handle;
    await handle.close();
    const { read } = prototype;
    let failed = 0;
    for (let good = 0; good < 30 && failed === good; good++) {
      let calls = 0;
      vi.spyOn(prototype, 'read').mockImplementation(function (this: typeof handle, ...args: unknown[]) {
        return ++calls > good ? Promise.reject(failure()) : Reflect.apply(read, this, args);
      } as never);
      const rows = async () => {
        for await (const _ of await new ArrowSource(file).execute(context()));
      };
      const error = await rows().catch((thrown: unknown) => thrown);
      vi.restoreAllMocks();
      if (error === undefined) break;
      failed++;
      expect(error).toBeInstanceOf(DataError);
      expect(error).toMatchObject({ details: { file } });
      expect(String(error)).toContain('the disk or its server reports an error (EIO)');
    }
    expect(failed).toBeGreaterThan(3);
  });

  it('in the reads of a checkpoint', async () => {
    const kept = await CheckpointFolder.open(folder);
    await kept.write(2, {}, { users: new Float32Array(4) });
    await kept.close();
    vi.spyOn(fs, 'read').mockImplementation(((...args: unknown[]) =>
      (args.at(-1) as (error: Error) => void)(failure())) as never);
    syncBuiltinESMExports();
    vi.resetModules();
    const { readState } = await import('../../../connectors/checkpoint/read-checkpoint.ts');
    const error = await readState(kept.pathOf(2)).catch((thrown: unknown) => thrown);
    expect(String(error)).toMatch(/^DataError: .*reports an error \(EIO\) .*checkpoint-00000002/);
  });

  it('and not hidden by the lock of a checkpoint folder, which cannot be closed either', async () => {
    const { open: whole } = fs.promises;
    vi.spyOn(fs.promises, 'open').mockImplementation(async (file, flags) => {
      const handle = await whole(file, flags);
      if (flags !== 'r+') return handle;
      const close = handle.close.bind(handle);
      return Object.assign(handle, { close: () => close().then(() => Promise.reject(failure())) });
    });
    syncBuiltinESMExports();
    const kept = await CheckpointFolder.open(folder);
    await kept.close();
    expect(readdirSync(folder)).toEqual([]);
  });

  it('of a new lock, by the name of the folder', async () => {
    vi.spyOn(fs.promises, 'open').mockRejectedValueOnce(failure());
    syncBuiltinESMExports();
    await expect(CheckpointFolder.open(folder)).rejects.toThrow(
      `checkpointDir ${folder} cannot be written to (EIO)`,
    );
  });

  it('in the reads of spilled ratings', () => {
    const file = join(folder, 'spilled');
    const columns = { values: sharedArray(Float32Array, 2) };
    const [spilled] = writeSpilled(file, [{ layout: 'factors', rows: 2, columns }]).directory;
    failSyncReads();
    expect(() => readSpilled(spilled)).toThrow(
      /^spill: a spill file cannot be read \(EIO\) .*spilled\). Check the disk, or choose another spillDir$/,
    );
  });
});

it('a spill file that cannot be written is named', () => {
  const columns = { values: sharedArray(Float32Array, 2) };
  expect(() => writeSpilled(join(folder, 'none/spilled'), [{ layout: 'factors', rows: 2, columns }])).toThrow(
    /^spill: a spill file cannot be written \(ENOENT\) \(.*none\/spilled\). Check the disk/,
  );
});

it('the file of the thread that loads models is named where it is missing', async () => {
  vi.stubEnv('FACTORFLOW_TEST_RUN', 'none');
  vi.resetModules();
  const { loadInThread } = await import('../../../connectors/model/load-in-thread.ts');
  await expect(loadInThread(folder)).rejects.toThrow(
    /^a thread cannot start: Cannot find module .*load-worker.* The installed package is incomplete/s,
  );
});

describe('an error of an input is no error of the output', () => {
  it('where the system has no room to read it', async () => {
    const full = Object.assign(new Error('ENOSPC: no space left on device, open'), { code: 'ENOSPC' });
    const output = await atomicOutput(join(folder, 'out'), { kind: 'file', recognizes: () => true });
    const error = await output.fail(fileProblem(full, 'read', '/mount/in.arrow'));
    expect(String(error)).toMatch(/^CapacityError: read: the system has no room .*\(\/mount\/in.arrow\)/);
  });

  it('where Parquet is opened or read by ranges', async () => {
    const file = join(folder, 'ratings.parquet');
    writeFileSync(file, new Uint8Array(1 << 20));
    vi.spyOn(fs, 'openSync').mockImplementationOnce(() => {
      throw failure();
    });
    syncBuiltinESMExports();
    const named = { details: { file, phase: 'read' } };
    await expect(openRandomAccess(file, true)).rejects.toMatchObject(named);
    const broken = {
      stat: async () => ({ size: 9 }),
      read: () => Promise.reject(failure()),
      close: async () => {},
    };
    await expect(readExactly(broken, file, 0, 4)).rejects.toMatchObject(named);
  });
});

describe('calls that do less', () => {
  it('give all of the first bytes of a file', () => {
    const file = join(folder, 'text');
    writeFileSync(file, '0123456789');
    const { readSync } = fs;
    vi.spyOn(fs, 'readSync').mockImplementation(((...[fd, bytes, at, , from]: unknown[]) =>
      readSync(fd as number, bytes as Uint8Array, at as number, 1, from as number)) as never);
    syncBuiltinESMExports();
    expect(Buffer.from(firstBytes(file, 4)).toString()).toBe('0123');
    expect(Buffer.from(firstBytes(file, 40)).toString()).toBe('0123456789');
  });

  it('and a file that was read fails to close: all is known by then', async () => {
    const file = join(folder, 'text');
    writeFileSync(file, '0123456789');
    const { closeSync } = fs;
    vi.spyOn(fs, 'closeSync').mockImplementation((fd) => {
      closeSync(fd);
      throw failure();
    });
    syncBuiltinESMExports();
    expect(Buffer.from(firstBytes(file, 4)).toString()).toBe('0123');
    expect(Buffer.from(readRegular(file, 10)).toString()).toBe('0123456789');
    await closeReader({ close: () => Promise.reject(failure()) });
  });

  it('and a stream that is refused again and again names its file', () => {
    const refused = Object.assign(new Error('A system error occurred'), { code: 'ERR_SYSTEM_ERROR' });
    expect(String(fileProblem(refused, 'write', '/data/rows.csv'))).toMatch(
      /^DataError: write: the system takes no more bytes \(EAGAIN\) \(\/data\/rows.csv\)/,
    );
  });
});

describe('a name that is not UTF-8', () => {
  const name = 'a\uFFFD';

  it('is said to be one where a file is missing', async () => {
    await expect(resolveDataset(join(folder, name), { extensions: [] })).rejects.toThrow(
      /no such file or folder: the name is not UTF-8 .*Rename the file/,
    );
  });

  it.each([name, 'half \uD800', `${name}/below`])('is no name of an output: %j', async (output) => {
    const path = join(folder, output);
    const make = [
      () => atomicOutput(path, { kind: 'file', recognizes: () => true }),
      () => CheckpointFolder.open(path),
      () => new SpillFolder(path).open(),
      () => checkWritable(path),
    ];
    for (const one of make) {
      const error = await one().catch((thrown: unknown) => thrown);
      expect(error).toBeInstanceOf(UsageError);
      expect(String(error)).toContain('the name is not UTF-8, and would be written as another name');
    }
    expect(() => makeOwnFolder(path)).toThrow('is not UTF-8, and would be written as another name');
    expect(readdirSync(folder)).toEqual([]);
  });

  it('is kept where a file has that very name', async () => {
    writeFileSync(join(folder, name), 'old');
    const output = await atomicOutput(join(folder, name), {
      kind: 'file',
      overwrite: true,
      recognizes: () => true,
    });
    copyFileSync(join(folder, name), output.temporary);
    await output.commit();
    expect(readdirSync(folder)).toEqual([name]);
  });
});
