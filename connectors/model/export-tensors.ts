import { join } from 'node:path';
import { toHalf } from '../../engine/numbers/half.ts';
import { safetensorsBytes, type Tensor } from '../safetensors/safetensors.ts';
import { type ExportedSides, type ExportForm, writePieces } from './exported-sides.ts';
import { type IdColumn, idCount } from './id-column.ts';

/** Writes factors.safetensors: ids and factors of both sides, in the order of their ids. */
export async function writeTensors(folder: string, sides: ExportedSides, form: ExportForm): Promise<void> {
  const tensors = Object.entries(sides).flatMap(([side, { ids, factors }]): Tensor[] => [
    {
      name: `${side}_factors`,
      type: form.precision === 'float16' ? 'F16' : 'F32',
      shape: [idCount(ids), form.rank],
      data: form.precision === 'float16' ? toHalf(factors) : factors,
    },
    ...idTensors(side, ids),
  ]);
  const metadata = { format: 'factorflow', rank: String(form.rank) };
  await writePieces(join(folder, 'factors.safetensors'), safetensorsBytes(tensors, metadata));
}

/** The format has no texts: UTF-8 bytes of all ids, and where each id begins and the last one ends. */
function idTensors(side: string, ids: IdColumn): Tensor[] {
  const shape = [idCount(ids)];
  if (ids.type === 'int32') return [{ name: `${side}_ids`, type: 'I32', shape, data: ids.values }];
  if (ids.type === 'int64') return [{ name: `${side}_ids`, type: 'I64', shape, data: ids.values }];
  const bytes = ids.bytes.subarray(0, ids.offsets[ids.offsets.length - 1]);
  return [
    { name: `${side}_id_bytes`, type: 'U8', shape: [bytes.length], data: bytes },
    { name: `${side}_id_offsets`, type: 'I32', shape: [ids.offsets.length], data: ids.offsets },
  ];
}
