import { join } from 'node:path';
import { throwIfAborted } from '../../engine/errors.ts';
import { toHalf } from '../../engine/numbers/half.ts';
import { npyBytes } from '../numpy/npy.ts';
import { type ExportedSides, type ExportForm, writePieces } from './exported-sides.ts';
import { idCount } from './id-column.ts';

/** Writes user_ids.npy, user_factors.npy, item_ids.npy and item_factors.npy. */
export async function writeArrays(folder: string, sides: ExportedSides, form: ExportForm): Promise<void> {
  for (const [side, { ids, factors }] of Object.entries(sides)) {
    const array = ids.type === 'utf8' ? { texts: textsOf(ids) } : { values: ids.values };
    await writePieces(join(folder, `${side}_ids.npy`), npyBytes({ shape: [idCount(ids)], ...array }));
    const shape = [idCount(ids), form.rank];
    const numbers = form.precision === 'float16' ? { half: toHalf(factors) } : { values: factors };
    await writePieces(join(folder, `${side}_factors.npy`), npyBytes({ shape, ...numbers }));
    throwIfAborted(form.signal, 'export');
  }
}

function textsOf({ offsets, bytes }: { readonly offsets: Int32Array; readonly bytes: Uint8Array }): string[] {
  return Array.from({ length: offsets.length - 1 }, (_, i) =>
    Buffer.from(bytes.subarray(offsets[i], offsets[i + 1])).toString('utf8'),
  );
}
