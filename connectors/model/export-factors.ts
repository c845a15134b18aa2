import { throwIfAborted, UsageError } from '../../engine/errors.ts';
import { fileProblem } from '../files/file-problem.ts';
import { atomicOutput } from '../output/atomic-output.ts';
import { writeArrays } from './export-arrays.ts';
import { writeTables } from './export-tables.ts';
import { writeTensors } from './export-tensors.ts';
import type { ExportedSides } from './exported-sides.ts';

export const exportFormats = ['npy', 'parquet', 'safetensors'] as const;
export type ExportFormat = (typeof exportFormats)[number];

export interface ExportOptions {
  /**
   * NumPy arrays (user_ids.npy, user_factors.npy, item_ids.npy, item_factors.npy), Parquet (users.parquet,
   * items.parquet: id, features), or safetensors (factors.safetensors: tensors of the arrays' names; text ids
   * as user_id_bytes, UTF-8, and user_id_offsets, n + 1 of them).
   */
  readonly format: ExportFormat;
  readonly precision: 'float32' | 'float16';
  readonly overwrite?: boolean;
  readonly signal?: AbortSignal;
}

const names = [
  'user_ids.npy',
  'user_factors.npy',
  'item_ids.npy',
  'item_factors.npy',
  'users.parquet',
  'items.parquet',
  'factors.safetensors',
];

/** Writes a folder with the factors of both sides. It appears completely or not at all. */
export async function exportFactors(
  directory: string,
  sides: ExportedSides,
  rank: number,
  { format = 'npy', precision = 'float32', ...options }: Partial<ExportOptions>,
): Promise<void> {
  if (!exportFormats.includes(format))
    throw new UsageError(`format must be npy, parquet or safetensors, got ${String(format)}`);
  if (precision !== 'float32' && precision !== 'float16')
    throw new UsageError(`precision must be float32 or float16, got ${String(precision)}`);
  throwIfAborted(options.signal, 'export');
  const bytes = Object.values(sides).reduce((sum, { factors }) => sum + factors.byteLength, 0);
  const output = await atomicOutput(directory, {
    kind: 'folder',
    overwrite: options.overwrite,
    recognizes: (path) => names.includes(path),
    durable: true,
  });
  try {
    const write = { npy: writeArrays, parquet: writeTables, safetensors: writeTensors }[format];
    await write(output.temporary, sides, { rank, precision, signal: options.signal });
    await output.commit();
  } catch (error) {
    throw await output.fail(
      fileProblem(error, 'export', directory),
      precision === 'float16' ? bytes / 2 : bytes,
    );
  }
}
