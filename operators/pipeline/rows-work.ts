import type { Schema } from 'apache-arrow';
import type { DeviceInfo } from '../../engine/plan/device-info.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import type { ReadSplit } from '../../engine/stream/split.ts';
import type { RowStage } from '../exchange/exchange-room.ts';
import type { OtherRows, RowUnit } from './row-unit.ts';
import type { ChainOperator } from './run-chain.ts';
import type { SplitGroup } from './split-order.ts';

/** Rows that tasks take, and the operators that they run over them. */
export interface RowsWork {
  /** The columns of the rows that are taken. */
  readonly source: Schema;
  /** The columns after the operators. */
  readonly schema: Schema;
  readonly operators: readonly ChainOperator[];
  /** The other side of each join among the operators, whole: all tasks take it. */
  readonly others?: readonly OtherRows[];
  readonly device: Pick<DeviceInfo, 'place' | 'parallelism'>;
  /** Of units: bytes of the rows that are taken. */
  readonly bytes?: number;
  readonly taken: TakenRows;
}

/** The rows of splits, a group a task, or units of rows in memory or in files of this process. */
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

/** An exchange that has not been started. */
export interface RowExchange {
  /** A line of text for plans. */
  describe(): string;
  /** The stages of its run, as far as they are known before rows are read. */
  stages(): readonly RowStage[];
  /** Runs it; gives the work over its parts, before the operators of the work that has it. */
  begin(ctx: ExecutionContext): Promise<RowsWork>;
}

/** The work over the rows of an exchange. */
export function exchangeWork(schema: Schema, device: RowsWork['device'], exchange: RowExchange): RowsWork {
  return { source: schema, schema, operators: [], device, taken: { kind: 'exchange', exchange } };
}

/** The work with its exchange done. */
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
