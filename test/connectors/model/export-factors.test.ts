/** Factors for other programs: NumPy's format, and Parquet as DuckDB reads it. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DuckDBInstance } from '@duckdb/node-api';
import { describe, expect, it } from 'vitest';
import { type ExportedSide, exportFactors, npyBytes } from '../../../connectors/model/export-factors.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const folder = temporaryFolder();

const user: ExportedSide = {
  ids: { type: 'int64', values: BigInt64Array.of(-5n, 2n ** 40n) },
  factors: Float32Array.of(1, -0.5, 0.25, 3),
};
const item: ExportedSide = {
  ids: {
    type: 'utf8',
    offsets: Int32Array.of(0, 1, 5),
    bytes: new TextEncoder().encode('añ🎵'.slice(0, 2) + 'bc'),
  },
  factors: Float32Array.of(0.1, 2, -7, 65_536),
};

/** Header and data of a .npy file. */
function npy(path: string): { readonly header: string; readonly data: Buffer } {
  const file = readFileSync(path);
  expect([...file.subarray(0, 8)]).toEqual([0x93, ...Buffer.from('NUMPY'), 1, 0]);
  const end = 10 + file.readUInt16LE(8);
  expect(end % 64).toBe(0);
  return { header: file.toString('latin1', 10, end).trimEnd(), data: file.subarray(end) };
}

/** The tensors of a .safetensors file, each with its bytes. */
function tensorsOf(path: string) {
  const file = readFileSync(path);
  const end = 8 + Number(file.readBigUInt64LE(0));
  expect(end % 8).toBe(0);
  const { __metadata__: metadata, ...entries } = JSON.parse(file.toString('utf8', 8, end)) as Record<
    string,
    { readonly dtype: string; readonly shape: number[]; readonly data_offsets: [number, number] }
  >;
  const tensors = Object.entries(entries).map(
    ([
      name,
      {
        dtype,
        shape,
        data_offsets: [start, stop],
      },
    ]) => {
      return [name, { dtype, shape, start, data: file.subarray(end + start, end + stop) }] as const;
    },
  );
  // The format allows no gaps and no bytes after the last tensor.
  const ends = tensors.map(([, { start, data }]) => start + data.length);
  expect(tensors.map(([, { start }]) => start)).toEqual([0, ...ends.slice(0, -1)]);
  expect(end + ends[ends.length - 1]).toBe(file.length);
  return { metadata, tensors: Object.fromEntries(tensors) };
}

describe('exported factors', () => {
  it('are arrays of NumPy', async () => {
    const path = join(folder, 'npy');
    await exportFactors(path, { user, item }, 2, {});
    const [factors, ids, texts] = ['user_factors', 'user_ids', 'item_ids'].map((name) =>
      npy(join(path, `${name}.npy`)),
    );
    expect(factors.header).toBe("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), }");
    expect([0, 4, 8, 12].map((at) => factors.data.readFloatLE(at))).toEqual([1, -0.5, 0.25, 3]);
    expect([ids.header, ids.data.readBigInt64LE(0), ids.data.readBigInt64LE(8)]).toEqual([
      "{'descr': '<i8', 'fortran_order': False, 'shape': (2,), }",
      -5n,
      2n ** 40n,
    ]);
    expect(texts.header).toBe("{'descr': '<U3', 'fortran_order': False, 'shape': (2,), }");
    expect(
      new TextDecoder('utf-16le').decode(Uint8Array.from(texts.data.filter((_, at) => at % 4 < 2))),
    ).toBe('a\0\0ñbc');
    await exportFactors(path, { user, item }, 2, { precision: 'float16', overwrite: true });
    const half = npy(join(path, 'item_factors.npy'));
    expect([half.header, half.data.length, half.data.readUInt16LE(2), half.data.readUInt16LE(6)]).toEqual([
      "{'descr': '<f2', 'fortran_order': False, 'shape': (2, 2), }",
      8,
      0x4000,
      0x7c00,
    ]);
  });

  it('have a text of any width, and an empty side', () => {
    const [header] = npyBytes({ shape: [0], texts: [] });
    expect(new TextDecoder().decode(header)).toContain("'<U1', 'fortran_order': False, 'shape': (0,)");
    expect(npyBytes({ shape: [2], texts: ['🎵', ''] })[1].length).toBe(8);
  });

  it.each(['float32', 'float16'] as const)('are Parquet of %s to DuckDB', async (precision) => {
    const path = join(folder, precision);
    await exportFactors(path, { user, item }, 2, { format: 'parquet', precision });
    const connection = await (await DuckDBInstance.create()).connect();
    const rows = (
      await connection.runAndReadAll(
        `SELECT id, features::FLOAT[] FROM read_parquet('${path}/users.parquet')`,
      )
    ).getRowsJS();
    expect(rows).toEqual([
      [-5n, [1, -0.5]],
      [2n ** 40n, [0.25, 3]],
    ]);
  });

  it('are tensors, aligned to their numbers', async () => {
    const path = join(folder, 'tensors');
    await exportFactors(path, { user, item }, 2, { format: 'safetensors' });
    const { metadata, tensors } = tensorsOf(join(path, 'factors.safetensors'));
    expect(metadata).toEqual({ format: 'factorflow', rank: '2' });
    expect(
      Object.entries(tensors).map(([name, { dtype, shape, start }]) => [name, dtype, shape, start]),
    ).toEqual([
      ['user_ids', 'I64', [2], 0],
      ['user_factors', 'F32', [2, 2], 16],
      ['item_factors', 'F32', [2, 2], 32],
      ['item_id_offsets', 'I32', [3], 48],
      ['item_id_bytes', 'U8', [5], 60],
    ]);
    const { data } = tensors.user_factors;
    expect([0, 4, 8, 12].map((at) => data.readFloatLE(at))).toEqual([1, -0.5, 0.25, 3]);
    expect(tensors.user_ids.data.readBigInt64LE(8)).toBe(2n ** 40n);
    expect(tensors.item_id_bytes.data.toString('utf8')).toBe('añbc');
  });

  it('are tensors of half the bytes, of no rows too', async () => {
    const path = join(folder, 'half-tensors');
    const nobody: ExportedSide = {
      ids: { type: 'int32', values: new Int32Array() },
      factors: new Float32Array(),
    };
    const options = { format: 'safetensors', precision: 'float16' } as const;
    await exportFactors(path, { user: nobody, item }, 2, options);
    const { tensors } = tensorsOf(join(path, 'factors.safetensors'));
    expect(tensors.user_factors).toMatchObject({ dtype: 'F16', shape: [0, 2], data: Buffer.alloc(0) });
    expect(tensors.item_factors.data.readUInt16LE(2)).toBe(0x4000);
  });

  it('are whole or not there, and replace nothing else', async () => {
    await expect(exportFactors(join(folder, 'npy'), { user, item }, 2, {})).rejects.toThrow(/exists/);
    await expect(exportFactors(folder, { user, item }, 2, { overwrite: true })).rejects.toThrow();
    await expect(
      exportFactors(join(folder, 'x'), { user, item }, 2, { format: 'csv' as never }),
    ).rejects.toThrow('format must be npy, parquet or safetensors, got csv');
    await expect(
      exportFactors(join(folder, 'x'), { user, item }, 2, { precision: 'int8' as never }),
    ).rejects.toThrow('precision must be float32 or float16');
    await expect(
      exportFactors(join(folder, 'x'), { user, item }, 2, { signal: AbortSignal.abort() }),
    ).rejects.toThrow('cancelled');
    expect(existsSync(join(folder, 'x'))).toBe(false);
  });
});
