import { Field, Float32, makeData, RecordBatch, Schema } from 'apache-arrow';
import { UsageError } from '../../engine/errors.ts';
import type { JsonObject } from '../../engine/json.ts';
import { batchPositions } from '../../engine/keys/arrow-keys.ts';
import { UNKNOWN_KEY } from '../../engine/keys/key-column.ts';
import { dataSetName, partitionRef, sharedArray } from '../../engine/partition.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import { computeDevice } from '../../engine/run/devices.ts';
import { Holdings } from '../../engine/run/holdings.ts';
import { mapOrdered } from '../../engine/stream/map-ordered.ts';
import type { ValueNeeds } from '../../engine/stream/operator.ts';
import type { BatchStream } from '../../engine/stream/stream.ts';
import { batchOf, RowOperator, takeRows } from '../dataflow/row-operator.ts';
import { usualNames, type WantedColumns } from '../ratings/rows/column-names.ts';
import { keyTypeOfColumn, findColumns, noteOfRecognised } from '../ratings/rows/columns.ts';
import { runTask } from '../tasks/run-tasks.ts';
import type { TaskOf } from '../tasks/tasks.ts';
import { type FactorModel, lookupOf, type PairFactors, placeForPairs } from './factor-model.ts';

const STAGE = 'predict-pairs';

export type ColdStart = 'nan' | 'drop';

/**
 * The columns to read users and items from (named by the data set, else preferred by the caller, else found
 * by usual names), and the name of the new column.
 */
export interface PredictColumns extends Pick<WantedColumns, 'named' | 'preferred'> {
  readonly prediction: string;
}

interface PairNames {
  readonly user: string;
  readonly item: string;
}

/**
 * Adds the prediction x_uᵀθ_v as a float32 column to rows that have a user and an item; other columns are
 * unchanged. For an unknown user or item, the option coldStart decides as Spark's coldStartStrategy does: the
 * prediction is NaN, or the row is removed.
 */
export class Predict extends RowOperator {
  readonly name = 'predict';
  readonly #model: FactorModel;
  readonly #columns: PredictColumns;
  readonly #coldStart: ColdStart;

  constructor(model: FactorModel, columns: PredictColumns, coldStart: ColdStart = 'nan') {
    super();
    this.#model = model;
    this.#columns = columns;
    this.#coldStart = coldStart;
  }

  describe(): JsonObject {
    const { named, preferred, prediction } = this.#columns;
    return { rank: this.#model.rank, ...preferred, ...named, prediction, coldStart: this.#coldStart };
  }

  get needs(): ValueNeeds {
    const { named, preferred } = this.#columns;
    const { user, item } = { ...usualNames, ...preferred, ...named };
    return { numbers: [], takesFaults: false, texts: [user, item] };
  }

  override outputSchema(input: Schema): Schema {
    const { prediction } = this.#columns;
    for (const column of Object.values(this.#pair(input))) keyTypeOfColumn(input, column);
    if (input.fields.some((field) => field.name === prediction)) {
      throw new UsageError(`the input has a column "${prediction}" already`, {
        advice: 'Rename it, or choose another name for predictions',
      });
    }
    return new Schema([...input.fields, new Field(prediction, new Float32(), false)]);
  }

  override requiredColumns(wanted?: readonly string[]): readonly string[] | undefined {
    const { user, item } = this.#columns.named ?? {};
    if (wanted === undefined || user === undefined || item === undefined) return undefined;
    const { prediction } = this.#columns;
    return [...new Set([...wanted.filter((name) => name !== prediction), user, item])];
  }

  override execute(input: BatchStream, ctx: ExecutionContext): BatchStream {
    const note = noteOfRecognised(findColumns(input.schema, ['user', 'item'], this.#columns));
    if (note !== undefined) ctx.events({ type: 'note', text: note });
    return super.execute(input, ctx);
  }

  #pair(schema: Schema): PairNames {
    const { columns } = findColumns(schema, ['user', 'item'], this.#columns);
    return { user: columns.user ?? usualNames.user, item: columns.item ?? usualNames.item };
  }

  protected async *batches(input: BatchStream, schema: Schema, ctx: ExecutionContext) {
    const holdings = new Holdings(ctx);
    const pair = this.#pair(input.schema);
    try {
      const scored = await scoredBatches(input, pair, this.#model, holdings.ctx);
      for await (const { batch, predictions, warm } of scored) {
        const column = makeData({ type: new Float32(), length: batch.numRows, data: predictions });
        const whole = batchOf(schema, batch.numRows, [...batch.data.children, column]);
        if (warm.length === batch.numRows || this.#coldStart === 'nan') yield whole;
        else if (warm.length > 0) yield takeRows(whole, warm);
      }
    } finally {
      await holdings.close();
    }
  }
}

/** The pairs of a batch with their predictions. */
interface ScoredPairs {
  /** x_uᵀθ_v of each row of the batch; NaN if user or item is unknown. */
  readonly predictions: Float32Array;
  /** Rows whose user and item are known, ascending, and the positions of these users and items. */
  readonly warm: Uint32Array;
  readonly users: Uint32Array;
  readonly items: Uint32Array;
}

/** The batches of a stream with the predictions of their rows. */
export async function scoredBatches(
  input: BatchStream,
  columns: PairNames,
  model: FactorModel,
  ctx: ExecutionContext,
): Promise<AsyncIterable<ScoredPairs & { readonly batch: RecordBatch }>> {
  const factors = await placeForPairs(model, ctx);
  return mapOrdered(input, 2 * computeDevice(ctx.executor).info.parallelism, async (batch) => ({
    batch,
    ...(await scorePairs(batch, columns, model, factors, ctx)),
  }));
}

/** Scores each row of a batch. */
async function scorePairs(
  batch: RecordBatch,
  columns: PairNames,
  model: FactorModel,
  factors: PairFactors,
  ctx: ExecutionContext,
): Promise<ScoredPairs> {
  const users = batchPositions(lookupOf(model.users), batch, columns.user);
  const items = batchPositions(lookupOf(model.items), batch, columns.item);
  const known = new Uint32Array(batch.numRows);
  let count = 0;
  for (let i = 0; i < batch.numRows; i++)
    if (users[i] !== UNKNOWN_KEY && items[i] !== UNKNOWN_KEY) known[count++] = i;
  const warm = known.subarray(0, count);
  const predictions = new Float32Array(batch.numRows).fill(Number.NaN);
  const [rows, cols] = [sharedArray(Uint32Array, count), sharedArray(Uint32Array, count)];
  if (count === 0) return { predictions, warm, users: rows, items: cols };
  for (let k = 0; k < count; k++) {
    rows[k] = users[warm[k]];
    cols[k] = items[warm[k]];
  }
  const values = await scorePositions(rows, cols, { rank: model.rank, factors }, ctx);
  for (let k = 0; k < count; k++) predictions[warm[k]] = values[k];
  return { predictions, warm, users: rows, items: cols };
}

/** Predictions x_uᵀθ_v for pairs of positions; both arrays are in shared memory. */
export async function scorePositions(
  rows: Uint32Array,
  columns: Uint32Array,
  { rank, factors }: { readonly rank: number; readonly factors: PairFactors },
  ctx: ExecutionContext,
): Promise<Float32Array> {
  const name = dataSetName('predict');
  const [pairs, predictions] = [partitionRef(`${name}/pairs`), partitionRef(`${name}/predictions`)];
  const task: TaskOf<'predict'> = {
    kernel: 'predict',
    inputs: { pairs, rowFactors: factors.users, columnFactors: factors.items },
    outputs: { predictions },
    params: { rank },
  };
  const { handed } = await runTask(ctx, STAGE, factors.at, task, {
    given: [[pairs, { layout: 'pairs', rows: rows.length, columns: { rows, columns } }]],
    handsOut: [predictions],
  });
  return handed[0].columns.values as Float32Array;
}
