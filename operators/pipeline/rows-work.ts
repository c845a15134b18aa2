import type { Schema } from 'apache-arrow';
import type { DeviceInfo } from '../../engine/plan/device-info.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import type { ReadSplit } from '../../engine/stream/split.ts';
import type { RowStage } from '../exchange/exchange-room.ts';
import type { OtherRows, RowUnit } from './row-unit.ts';
import type { ChainOperator } from './run-chain.ts';
import type { SplitGroup } from './split-order.ts';

/** Work for tasks: the input rows, and the operators that the tasks apply to them. */
export interface RowsWork {
  /** Columns of the input rows. */
  readonly source: Schema;
  /** Columns after the operators. */
  readonly schema: Schema;
  readonly operators: readonly ChainOperator[];
  /** The whole build side of each join among the operators; all tasks read it. */
  readonly others?: readonly OtherRows[];
  readonly device: Pick<DeviceInfo, 'place' | 'parallelism'>;
  /** Bytes of the input rows, for units. */
  readonly bytes?: number;
  readonly taken: TakenRows;
}

/**
 * The tasks' input: splits of a source, of which each task reads a group; or rows of an exchange, in units
 * that are in memory or files of this process.
 */
export type TakenRows =
  | {
      readonly kind: 'splits';
      readonly groups: readonly SplitGroup[];
      readonly readHere: ReadSplit;
      /** See SourceSplits. */
      readonly mostValues?: Readonly<Record<string, number>>;
      /** See SourceSplits. */
      readonly whenRead?: (() => void) | undefined;
    }
  | { readonly kind: 'units'; readonly units: AsyncIterable<RowUnit> }
  | { readonly kind: 'exchange'; readonly exchange: RowExchange };

/** An exchange that has not started. */
export interface RowExchange {
  /** One line for plans. */
  describe(): string;
  /** Stages of its run, as far as they are known before rows are read. */
  stages(): readonly RowStage[];
  /** Runs the exchange. Returns the work over its parts, without the operators after it. */
  begin(ctx: ExecutionContext): Promise<RowsWork>;
}

/** Work whose input is an exchange that has not started; `begun` runs it. */
export function exchangeWork(schema: Schema, device: RowsWork['device'], exchange: RowExchange): RowsWork {
  return { source: schema, schema, operators: [], device, taken: { kind: 'exchange', exchange } };
}

/** Runs the exchange of a work, if it has one. Returns work whose input is the exchanged rows. */
export async function begun(work: RowsWork, ctx: ExecutionContext): Promise<RowsWork> {
  if (work.taken.kind !== 'exchange') return work;
  const first = await begun(await work.taken.exchange.begin(ctx), ctx);
  return {
    ...first,
    schema: work.schema,
    operators: [...first.operators, ...work.operators],
    others: [...(first.others ?? []), ...(work.others ?? [])],
  };
}
