import type { Gpu } from '../gpu.ts';
import type { DeviceBlock } from '../resources.ts';
import { paddedRank, slotElements } from './layout.ts';
import type { UpdateVariant } from './variant.ts';
import { EntryList, rowsByLength } from './work.ts';

/** Ratings of a part: long rows are cut, so that no workgroup works for long on its own. */
const PART_RATINGS = 8192;

/** Lengths of the lists of short rows: update-short is compiled for each. */
const shortLengths = [32, 64];

/** Memory for normal equations between their kernel and the solver. */
const SLOT_BYTES = 512 << 20;

/** Rows whose slots fit the scratch together. */
interface Batch {
  readonly parts: GPUBuffer;
  readonly partCount: number;
  readonly rows: GPUBuffer;
  readonly rowCount: number;
}

interface RowList {
  readonly entries: GPUBuffer;
  readonly count: number;
}

/** The rows of a block, dealt to the kernels that solve them. */
export interface PreparedRows {
  /** Solved by their dual systems, by the longest row that a list may hold. */
  readonly short: readonly (RowList & { readonly longest: number })[];
  /** Solved where they are summed. */
  readonly fused?: RowList;
  /** Summed to slots, then solved. */
  readonly batches: readonly Batch[];
  readonly slotBytes: number;
}

/** Makes the lists once for a block, range, rank and variant; they are freed with the block. */
export async function prepareRows(gpu: Gpu, block: DeviceBlock, { variant, from, to, rank }: { readonly variant: UpdateVariant; readonly from: number; readonly to: number; readonly rank: number }, fixedRows: number, short: number): Promise<PreparedRows> {
  const regions = regionsOf(fixedRows, rank, variant);
  const limits = { short, fused: variant.fused?.longest ?? -1 };
  const key = `rows ${from} ${to} ${rank} ${limits.short} ${limits.fused} ${regions}`;
  const known = block.prepared.get(key) as PreparedRows | undefined;
  if (known !== undefined) return known;
  const prepared = await makeLists(gpu, block, limits, from, to, rank, Math.ceil(fixedRows / regions));
  block.prepared.set(key, prepared);
  return prepared;
}

/** Into how many regions the rows of θ are cut so that one stays in the GPU's cache. */
function regionsOf(fixedRows: number, rank: number, { precision, regionBytes }: UpdateVariant): number {
  if (regionBytes === 0) return 1;
  return Math.max(1, Math.ceil((fixedRows * paddedRank(rank) * (precision === 'f16' ? 2 : 4)) / regionBytes));
}

async function makeLists(gpu: Gpu, { offsets, columns }: DeviceBlock, limits: { readonly short: number; readonly fused: number }, from: number, to: number, rank: number, regionRows: number): Promise<PreparedRows> {
  const slotBytes = slotElements(rank) * 4;
  const capacity = Math.max(2, Math.floor(Math.min(SLOT_BYTES, gpu.info.limits.bindingBytes, gpu.info.limits.bufferBytes) / slotBytes));
  const fused = new EntryList();
  const short = shortLengths.map((longest) => ({ longest, list: new EntryList() }));
  const batches: Batch[] = [];
  let parts: Part[] = [];
  let rows = new EntryList();
  let slots = 0;
  let mostSlots = 0;
  const flush = async () => {
    if (rows.count === 0) return;
    batches.push({
      parts: await gpu.bufferOf(partEntries(parts), 'parts'),
      partCount: parts.length,
      rows: await gpu.bufferOf(rows.list.entries, 'rows'),
      rowCount: rows.count,
    });
    mostSlots = Math.max(mostSlots, slots);
    [parts, rows, slots] = [[], new EntryList(), 0];
  };
  for (const row of rowsByLength(offsets, from, to)) {
    const start = offsets[row];
    const length = offsets[row + 1] - start;
    if (length <= limits.short) {
      short.find(({ longest }) => length <= longest)?.list.add(row, start, length, 0);
      continue;
    }
    if (length <= limits.fused) {
      fused.add(row, start, length, 0);
      continue;
    }
    const cuts = cutRow(columns, start, length, length > PART_RATINGS ? regionRows : Number.POSITIVE_INFINITY, capacity);
    if (slots + cuts.length > capacity) await flush();
    rows.add(row, slots, length, cuts.length);
    for (const cut of cuts) parts.push({ ...cut, row, slot: slots++ });
  }
  await flush();
  const upload = async ({ list: { entries, count } }: EntryList, label: string): Promise<RowList> => ({ entries: await gpu.bufferOf(entries, label), count });
  return {
    short: await Promise.all(short.filter(({ list }) => list.count > 0).map(async ({ longest, list }) => ({ longest, ...(await upload(list, 'short rows')) }))),
    fused: fused.count === 0 ? undefined : await upload(fused, 'fused rows'),
    batches,
    slotBytes: mostSlots * slotBytes,
  };
}

interface Cut {
  readonly start: number;
  readonly length: number;
  readonly region: number;
}

interface Part extends Cut {
  readonly row: number;
  readonly slot: number;
}

/**
 * Pieces of a row in its order: at the borders of regions of the fixed rows, and none longer than PART_RATINGS, unless there
 * would be more than `most`. A row without ratings has one piece, or the solver would have nothing to read.
 */
function cutRow(columns: Uint32Array, start: number, length: number, regionRows: number, most: number): Cut[] {
  if (length === 0) return [{ start, length: 0, region: 0 }];
  const cuts: Cut[] = [];
  const size = Math.max(PART_RATINGS, Math.ceil(length / Math.max(1, most / 2)));
  for (let at = start; at < start + length; ) {
    const region = regionRows === Number.POSITIVE_INFINITY ? 0 : Math.floor(columns[at] / regionRows);
    const end = regionRows === Number.POSITIVE_INFINITY ? start + length : firstAtLeast(columns, at, start + length, (region + 1) * regionRows);
    const pieces = Math.ceil((end - at) / size);
    const piece = Math.ceil((end - at) / pieces);
    for (let piecesLeft = at; piecesLeft < end; piecesLeft += piece) cuts.push({ start: piecesLeft, length: Math.min(piece, end - piecesLeft), region });
    at = end;
  }
  return cuts.length <= most ? cuts : cutRow(columns, start, length, Number.POSITIVE_INFINITY, most);
}

/** The first of the ascending columns [from, to) that is at least `column`. */
function firstAtLeast(columns: Uint32Array, from: number, to: number, column: number): number {
  let [low, high] = [from, to];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (columns[middle] < column) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Region by region, so that what runs at the same time gathers from the same part of θ; the longest first. */
function partEntries(parts: Part[]): Uint32Array {
  parts.sort((left, right) => left.region - right.region || right.length - left.length || left.slot - right.slot);
  const list = new EntryList();
  for (const { row, start, length, slot } of parts) list.add(row, start, length, slot);
  return list.list.entries;
}
