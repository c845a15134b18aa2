import { type Partition, sharedArray } from '../../engine/partition.ts';

/** A block's columns cut into `p` parts of about equally many columns, with indices from 0 in each; [first, last) are a part's columns. */
export function verticalParts(block: Partition, columns: number, p: number): { readonly block: Partition; readonly first: number; readonly last: number }[] {
  const { offsets, indices, values } = block.columns as { offsets: Int32Array; indices: Uint32Array; values: Float32Array };
  return Array.from({ length: p }, (_, part) => {
    const [first, last] = [Math.floor((part * columns) / p), Math.floor(((part + 1) * columns) / p)];
    const inside = (k: number) => indices[k] >= first && indices[k] < last;
    const partOffsets = sharedArray(Int32Array, offsets.length);
    for (let row = 0; row < block.rows; row++) {
      partOffsets[row + 1] = partOffsets[row];
      for (let k = offsets[row]; k < offsets[row + 1]; k++) if (inside(k)) partOffsets[row + 1]++;
    }
    const [partIndices, partValues] = [sharedArray(Uint32Array, partOffsets[block.rows]), sharedArray(Float32Array, partOffsets[block.rows])];
    let next = 0;
    for (let k = 0; k < indices.length; k++) {
      if (!inside(k)) continue;
      partIndices[next] = indices[k] - first;
      partValues[next++] = values[k];
    }
    return { block: { ...block, columns: { offsets: partOffsets, indices: partIndices, values: partValues } }, first, last };
  });
}
