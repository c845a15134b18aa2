import type { Gpu } from '../gpu.ts';
import type { DeviceBlock } from '../resources.ts';
import { slotElements } from './layout.ts';
import type { UpdateVariant } from './variant.ts';
import { EntryList, rowsByLength } from './work.ts';

/** Ratings of a part: long rows are cut, so that no workgroup works for long on its own. */
const PART_RATINGS = 8192;

/** Memory for normal equations between their kernel and the solver. */
const SLOT_BYTES = 512 << 20;

/** Rows whose slots fit the scratch together. */
interface Batch {
  readonly parts: GPUBuffer;
  readonly partCount: number;
  readonly rows: GPUBuffer;
  readonly rowCount: number;
}

/** The rows of a block, dealt to the kernels that solve them. */
export interface PreparedRows {
  /** Solved where they are summed. */
  readonly fused?: { readonly entries: GPUBuffer; readonly count: number };
  /** Summed to slots, then solved. */
  readonly batches: readonly Batch[];
  readonly slotBytes: number;
}

/** Makes the lists once for a block, range, rank and variant; they are freed with the block. */
export async function prepareRows(gpu: Gpu, block: DeviceBlock, { variant, from, to, rank }: { readonly variant: UpdateVariant; readonly from: number; readonly to: number; readonly rank: number }): Promise<PreparedRows> {
  const key = `rows ${from} ${to} ${rank} ${variant.fused?.longest ?? 0}`;
  const known = block.prepared.get(key) as PreparedRows | undefined;
  if (known !== undefined) return known;
  const prepared = await makeLists(gpu, block, variant.fused?.longest ?? -1, from, to, rank);
  block.prepared.set(key, prepared);
  return prepared;
}

async function makeLists(gpu: Gpu, { offsets }: DeviceBlock, fusedLongest: number, from: number, to: number, rank: number): Promise<PreparedRows> {
  const slotBytes = slotElements(rank) * 4;
  const capacity = Math.max(2, Math.floor(Math.min(SLOT_BYTES, gpu.info.limits.bindingBytes, gpu.info.limits.bufferBytes) / slotBytes));
  const fused = new EntryList();
  const batches: Batch[] = [];
  let parts = new EntryList();
  let rows = new EntryList();
  let slots = 0;
  let mostSlots = 0;
  const flush = async () => {
    if (rows.count === 0) return;
    batches.push({
      parts: await gpu.bufferOf(parts.list.entries, 'parts'),
      partCount: parts.count,
      rows: await gpu.bufferOf(rows.list.entries, 'rows'),
      rowCount: rows.count,
    });
    mostSlots = Math.max(mostSlots, slots);
    [parts, rows, slots] = [new EntryList(), new EntryList(), 0];
  };
  for (const row of rowsByLength(offsets, from, to)) {
    const start = offsets[row];
    const length = offsets[row + 1] - start;
    if (length <= fusedLongest) {
      fused.add(row, start, length, 0);
      continue;
    }
    // A row has one slot at least, or the solver would have nothing to read; and never more than the scratch holds.
    const pieces = Math.max(1, Math.min(capacity, Math.ceil(length / PART_RATINGS)));
    const size = Math.ceil(length / pieces / 64) * 64;
    if (slots + pieces > capacity) await flush();
    const first = slots;
    for (let at = 0; at < length; at += size) parts.add(row, start + at, Math.min(size, length - at), slots++);
    if (length === 0) parts.add(row, start, 0, slots++);
    rows.add(row, first, length, slots - first);
  }
  await flush();
  return {
    fused: fused.count === 0 ? undefined : { entries: await gpu.bufferOf(fused.list.entries, 'fused rows'), count: fused.count },
    batches,
    slotBytes: mostSlots * slotBytes,
  };
}
