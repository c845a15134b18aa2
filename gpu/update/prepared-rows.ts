import type { DeviceBlock } from '../device/resources.ts';
import { paddedRank, slotElements } from '../device/slots.ts';
import { INT8_PART } from '../int8/int8-plan.ts';
import { vectorBytes, vectorQuads } from '../vectors/vectors.ts';
import type { Gpu } from '../webgpu/gpu.ts';
import { dealRows, type Parts, type RowLimits } from './deal-rows.ts';
import type { UpdateSettings, UpdateVariant } from './choice/variant.ts';

/**
 * Most bytes of the scratch buffer of slots. A slot holds the normal equations (or CG vectors) of one row or
 * part of a row, between the kernel that sums them and the kernel that solves the row.
 */
export const SLOT_BYTES = 512 << 20;

/**
 * Number of slots that the scratch buffer can hold, at least 2. `bytes`: size of a slot; default: the size of
 * normal equations.
 */
export function slotsOf(
  { info: { limits } }: Gpu,
  rank: number,
  biases: boolean,
  bytes = slotElements(rank, biases) * 4,
): number {
  return Math.max(2, Math.floor(Math.min(SLOT_BYTES, limits.bindingBytes, limits.bufferBytes) / bytes));
}

/**
 * A batch of long rows whose slots (memory for A and b of each part of a row) fit the scratch buffer
 * together. `parts` lists the parts of rows that are summed into slots, `rows` the rows that are then solved;
 * both in the format of Parts (deal-rows.ts).
 */
export interface RowBatch {
  readonly parts: GPUBuffer;
  readonly partCount: number;
  readonly rows: GPUBuffer;
  readonly rowCount: number;
}

interface RowList {
  readonly entries: GPUBuffer;
  readonly count: number;
}

/** The rows of a block, divided among the kernels that solve them, as lists in device memory. */
export interface PreparedRows {
  /**
   * Rows solved by dual systems, with n unknowns for n ratings. Rows of a list have at most `longest`
   * ratings.
   */
  readonly short: readonly (RowList & { readonly longest: number })[];
  /** Rows for which one kernel both computes A and solves (update-tensor or update-int8). */
  readonly fused?: RowList;
  /**
   * Longer rows: one kernel sums A and b into slots of scratch memory, another solves the rows from the
   * slots.
   */
  readonly batches: readonly RowBatch[];
  readonly slotBytes: number;
}

type RowSettings = Pick<
  UpdateSettings,
  'variant' | 'from' | 'to' | 'rank' | 'lambda' | 'offset' | 'damping' | 'biasLambda' | 'implicit'
>;

/**
 * Divides the rows [from, to) of a block among the kernels and uploads the lists. The result is cached with
 * the block, for calls with the same range and limits. `ratedOnly`: leave out rows without ratings.
 */
export async function prepareRows(
  gpu: Gpu,
  block: DeviceBlock,
  settings: RowSettings,
  fixedRows: number,
  biases: boolean,
  ratedOnly = false,
): Promise<PreparedRows> {
  const { variant, from, to, rank, implicit } = settings;
  const vectors = variant.sum.kernel === 'vectors';
  const numbers = variant.sum.kernel === 'vectors' && variant.sum.byRow !== true;
  const slotBytes = vectors ? 16 * vectorQuads(rank, biases).slot : slotElements(rank, biases) * 4;
  const limits: RowLimits = {
    short: isDualRegular(settings, variant.short, biases) ? variant.short : 0,
    fused: variant.fused?.longest ?? -1,
    part: partOf(variant, block.ratings),
    regions: regionsOf(fixedRows, rank, variant),
    ratedOnly,
    slots: slotsOf(
      gpu,
      rank,
      biases,
      vectors ? vectorBytes(rank, biases, implicit !== undefined) : undefined,
    ),
  };
  const key = `rows ${from} ${to} ${vectors} ${numbers} ${JSON.stringify(limits)}`;
  const known = block.prepared.get(key) as PreparedRows | undefined;
  if (known !== undefined) return known;
  const prepared = await uploadLists(gpu, block, from, to, limits, slotBytes, numbers);
  block.prepared.set(key, prepared);
  return prepared;
}

/**
 * Dual systems (n unknowns for the n ratings of a row) include the row's bias. They are well enough
 * conditioned if the regularization of the bias is at least this fraction of n.
 */
const LEAST_DUAL_BIAS = 1e-3;

/**
 * True if rows with up to `longest` ratings can be solved by dual systems (n unknowns for n ratings) in
 * float32: regularization must make these systems well conditioned.
 */
function isDualRegular(
  { lambda, offset = 0, damping = 0, biasLambda = lambda }: RowSettings,
  longest: number,
  biases: boolean,
): boolean {
  return lambda + offset > 0 && (!biases || biasLambda + damping / longest >= LEAST_DUAL_BIAS);
}

/**
 * Long rows are cut into parts. This number of parts keeps all workgroups of a large GPU busy to the end.
 * Blocks that would have twice this number or more get larger parts.
 */
const PARTS = 8500;

/**
 * Most ratings of one part of a long row; each part is summed into a slot of its own. The number is doubled
 * for large blocks, as long as about PARTS parts remain, since fewer parts mean fewer slots to write and
 * read. Measured on an H200 with 279 M ratings: 26.1 ms with parts of 8,192 ratings, 24.1 ms with 32,768.
 */
function partOf({ sum, partRatings }: UpdateVariant, ratings: number): number {
  const larger =
    partRatings * 2 ** Math.max(0, Math.floor(Math.log2(Math.max(1, ratings) / PARTS / partRatings)));
  return sum.kernel === 'int8' ? Math.min(larger, INT8_PART) : larger;
}

/**
 * Divides θ into equal regions (UpdateVariant.regions). Undefined without regions, or if all of θ is one.
 */
function regionsOf(
  fixedRows: number,
  rank: number,
  { precision, regions }: UpdateVariant,
): RowLimits['regions'] {
  if (regions === undefined) return undefined;
  const count = Math.ceil((fixedRows * paddedRank(rank) * (precision === 'f32' ? 4 : 2)) / regions.bytes);
  return count <= 1 ? undefined : { rows: Math.ceil(fixedRows / count), least: count * regions.ratings };
}

async function uploadLists(
  gpu: Gpu,
  { offsets, columns }: DeviceBlock,
  from: number,
  to: number,
  limits: RowLimits,
  slotBytes: number,
  numbers: boolean,
): Promise<PreparedRows> {
  const dealt = dealRows(offsets, columns, from, to, limits);
  const upload = async ({ entries, count }: Parts, label: string): Promise<RowList> => ({
    entries: await gpu.bufferOf(entries, label),
    count,
  });
  const batches: RowBatch[] = [];
  for (const { parts, rows } of dealt.batches) {
    const [partList, rowList] = [
      await upload(numbers ? numbered(parts, rows, from, to) : parts, 'parts'),
      await upload(rows, 'rows'),
    ];
    batches.push({
      parts: partList.entries,
      partCount: partList.count,
      rows: rowList.entries,
      rowCount: rowList.count,
    });
  }
  return {
    short: await Promise.all(
      dealt.short.map(async ({ longest, ...list }) => ({ longest, ...(await upload(list, 'short rows')) })),
    ),
    fused: dealt.fused.count === 0 ? undefined : await upload(dealt.fused, 'fused rows'),
    batches,
    slotBytes: dealt.batches.reduce((most, { slots }) => Math.max(most, slots), 0) * slotBytes,
  };
}

/**
 * Returns the list of parts with each row number replaced by the row's index in the batch. The kernels of CG
 * by vectors, which do not compute A, find the vectors of a row by that index.
 */
function numbered({ entries, count }: Parts, rows: Parts, from: number, to: number): Parts {
  const places = new Uint32Array(to - from);
  for (let at = 0; at < rows.count; at++) places[rows.entries[4 * at] - from] = at;
  return { entries: entries.map((value, at) => (at % 4 === 0 ? places[value - from] : value)), count };
}
