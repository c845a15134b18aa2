import { chooseUpdateMatrixFree, type UpdateMatrixFreeParams } from '../descriptors/update-matrix-free.ts';
import type { Gpu } from '../gpu.ts';
import type { DeviceBlock } from '../resources.ts';
import { paddedRank, slotElements } from './layout.ts';
import type { UpdateSettings } from './settings.ts';
import type { UpdateVariant } from './variant.ts';
import { EntryList, rowsByLength, rowsInOrder } from './work.ts';

/** Lengths of the lists of short rows: update-short is compiled for each. */
const shortLengths = [32, 64];

/** Memory for normal equations between their kernel and the solver. */
export const SLOT_BYTES = 512 << 20;

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
  /** Solved by CG without A. */
  readonly free?: RowList;
  /** Solved where they are summed. */
  readonly fused?: RowList;
  /** Summed to slots, then solved. */
  readonly batches: readonly Batch[];
  readonly slotBytes: number;
}

type RowSettings = Pick<UpdateSettings, 'variant' | 'from' | 'to' | 'rank' | 'lambda' | 'solver'>;

/** Makes the lists once for a block, range, rank and variant; they are freed with the block. */
export async function prepareRows(gpu: Gpu, block: DeviceBlock, settings: RowSettings, fixedRows: number, biases: boolean): Promise<PreparedRows> {
  const { variant, from, to, rank, lambda, solver } = settings;
  const limits: RowLimits = {
    rank,
    sorted: variant.sorted,
    // The dual system is regular only with λ.
    short: lambda > 0 ? variant.short : 0,
    free: variant.free && solver !== 'cholesky' ? freeParams(gpu, settings, biases).longest : 0,
    fused: variant.fused?.longest ?? -1,
    part: variant.partRatings,
    regionRows: regionRowsOf(fixedRows, rank, variant),
  };
  const key = `rows ${from} ${to} ${JSON.stringify(limits)}`;
  const known = block.prepared.get(key) as PreparedRows | undefined;
  if (known !== undefined) return known;
  const prepared = await makeLists(gpu, block, from, to, limits);
  block.prepared.set(key, prepared);
  return prepared;
}

/** The matrix-free kernel for a variant's short rows. */
export function freeParams(gpu: Gpu, { variant, rank, solver }: Pick<UpdateSettings, 'variant' | 'rank' | 'solver'>, biases: boolean): UpdateMatrixFreeParams {
  const steps = solver === 'cholesky' ? 0 : solver.steps;
  return chooseUpdateMatrixFree(rank, variant.precision, steps, biases, { bytes: Math.min(16384, gpu.info.limits.workgroupBytes) });
}

/** How rows are dealt: by their numbers of ratings. */
interface RowLimits {
  readonly rank: number;
  readonly sorted: boolean;
  readonly short: number;
  readonly free: number;
  readonly fused: number;
  readonly part: number;
  readonly regionRows: number;
}

/** Rows of θ in a region that stays in the GPU's cache. */
function regionRowsOf(fixedRows: number, rank: number, { precision, regionBytes }: UpdateVariant): number {
  if (regionBytes === 0) return 2 ** 32;
  const regions = Math.max(1, Math.ceil((fixedRows * paddedRank(rank) * (precision === 'f16' ? 2 : 4)) / regionBytes));
  return regions === 1 ? 2 ** 32 : Math.ceil(fixedRows / regions);
}

async function makeLists(gpu: Gpu, { offsets, columns }: DeviceBlock, from: number, to: number, limits: RowLimits): Promise<PreparedRows> {
  const { rank } = limits;
  const slotBytes = slotElements(rank) * 4;
  const capacity = Math.max(2, Math.floor(Math.min(SLOT_BYTES, gpu.info.limits.bindingBytes, gpu.info.limits.bufferBytes) / slotBytes));
  const fused = new EntryList();
  const free = new EntryList();
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
  for (const row of limits.sorted ? rowsByLength(offsets, from, to) : rowsInOrder(from, to)) {
    const start = offsets[row];
    const length = offsets[row + 1] - start;
    if (limits.short > 0 && length <= limits.short) {
      short.find(({ longest }) => length <= longest)?.list.add(row, start, length, 0);
      continue;
    }
    if (length <= limits.free) {
      free.add(row, start, length, 0);
      continue;
    }
    if (length <= limits.fused) {
      fused.add(row, start, length, 0);
      continue;
    }
    const cuts = cutRow(columns, start, length, limits, capacity);
    if (slots + cuts.length > capacity) await flush();
    rows.add(row, slots, length, cuts.length);
    for (const cut of cuts) parts.push({ ...cut, row, slot: slots++ });
  }
  await flush();
  const upload = async ({ list: { entries, count } }: EntryList, label: string): Promise<RowList> => ({ entries: await gpu.bufferOf(entries, label), count });
  return {
    short: await Promise.all(short.filter(({ list }) => list.count > 0).map(async ({ longest, list }) => ({ longest, ...(await upload(list, 'short rows')) }))),
    free: free.count === 0 ? undefined : await upload(free, 'free rows'),
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
 * Pieces of a row in its order: none longer than a part, and of a long row cut at the borders of regions of θ, unless there
 * would be more than `most`. A row without ratings has one piece, or the solver would have nothing to read.
 */
function cutRow(columns: Uint32Array, start: number, length: number, { part, regionRows }: Pick<RowLimits, 'part' | 'regionRows'>, most: number): Cut[] {
  if (length <= part) return [{ start, length, region: 0 }];
  const cuts: Cut[] = [];
  const size = Math.max(part, Math.ceil((2 * length) / most));
  for (let at = start; at < start + length; ) {
    const region = Math.floor(columns[at] / regionRows);
    const end = firstAtLeast(columns, at, start + length, (region + 1) * regionRows);
    const piece = Math.ceil((end - at) / Math.ceil((end - at) / size));
    for (let first = at; first < end; first += piece) cuts.push({ start: first, length: Math.min(piece, end - first), region });
    at = end;
  }
  return cuts.length <= most ? cuts : cutRow(columns, start, length, { part: Math.ceil(length / most), regionRows: 2 ** 32 }, length);
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
