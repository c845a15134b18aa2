/** Host memory for rows between GPUs: files in memory, and arrays. */
import { fstatSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { type FileMemory, type PartitionRef, sharedArray } from '../../engine/partition.ts';
import { HostMemory } from '../../engine/run/host-memory.ts';
import { MemoryFiles } from '../../gpu/exchange/memory-files.ts';

const ref = (name: string): PartitionRef => ({ name, partition: 0, version: 0 });

describe('files in memory', () => {
  it('have no names, serve again once their rows are released, and are closed with the store', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'factorflow-files-'));
    const memory = new HostMemory(new MemoryFiles(folder));
    const first = memory.take(20 << 20) as FileMemory;
    expect(first.files).toHaveLength(8);
    expect(readdirSync(folder)).toEqual([]);
    memory.put(ref('a'), {
      layout: 'wire-rows',
      rows: 1,
      columns: {},
      inFiles: { memory: first, form: 'f32', bytes: 4 },
    });
    memory.release(ref('a'));
    expect(memory.take(20 << 20)).toBe(first);
    await memory.close();
    expect(() => fstatSync(first.files[0])).toThrow('EBADF');
    rmSync(folder, { recursive: true });
  });

  it('give way to arrays where the system has no such folder', () => {
    expect(new HostMemory(new MemoryFiles('/no/such/folder')).take(1000)).toBeInstanceOf(SharedArrayBuffer);
  });
});

describe('host memory', () => {
  it('gives memory that was released again, to partitions of nearly the same size', () => {
    const memory = new HostMemory();
    const [first, second] = [memory.take(1000), memory.take(1000)] as [SharedArrayBuffer, SharedArrayBuffer];
    expect(second).not.toBe(first);
    memory.put(ref('a'), {
      layout: 'wire-rows',
      rows: 1,
      columns: { values: new Float32Array(first, 0, 250) },
    });
    memory.put(ref('b'), { layout: 'factors', rows: 1, columns: { values: sharedArray(Float32Array, 250) } });
    memory.release(ref('a'));
    memory.release(ref('b'));
    expect(memory.take(1200)).toBe(first);
    expect(memory.take(1000)).not.toBe(first);
  });
});
