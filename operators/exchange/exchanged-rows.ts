import type { Schema } from 'apache-arrow';
import type { ExecutionContext } from '../../engine/run/context.ts';
import type { BatchStream } from '../../engine/stream/stream.ts';
import { type Division, type Exchanging, type RowsWork, RowTasks } from '../pipeline/row-tasks.ts';
import { keepParts, type RowPart, RowUnit, unitsOfStream } from '../pipeline/row-unit.ts';
import { eachOf } from '../pipeline/split-tasks.ts';
import type { Exchange } from './exchange.ts';
import type { ExchangeRoom } from './exchange-room.ts';
import { rowBytes } from './row-bytes.ts';

/** Bytes of rows of a part: with what operators hold beside them, some times as many for each thread. */
const PART_BYTES = 16 << 20;
const MOST_PARTS = 1024;

/** Fewest bytes that a task takes of an exchange: smaller parts are taken together. */
const UNIT_BYTES = 4 << 20;

/** Bytes in memory for each that is stored, where the number of rows is not known. */
const UNPACKED = 4;

/** Units of a stream that are read before the number of parts is chosen, and parts where that is not its end. */
const FIRST_UNITS = 8;
const STREAM_PARTS = 128;

/** The input of an exchange. */
export interface ExchangeInput {
  readonly schema: Schema;
  readonly by: Exchange;
  /** The number of parts where it is given: then each part is a unit. */
  readonly parts: number | undefined;
  readonly device: RowsWork['device'];
  readonly room: ExchangeRoom;
  /** The work of tasks, or a stream in the calling thread, with the reason for it. */
  readonly work:
    | RowsWork
    | { readonly reason: string; readonly stream: (ctx: ExecutionContext) => Promise<BatchStream> };
}

/** The rows of an input by the parts of an exchange. */
export class ExchangedRows implements Exchanging {
  readonly input: ExchangeInput;

  constructor(input: ExchangeInput) {
    this.input = input;
  }

  /** The number of parts, as far as it is known before rows are read. */
  get estimatedParts(): number | undefined {
    const { parts, work, schema } = this.input;
    if (parts !== undefined) return parts;
    if ('stream' in work || work.taken.kind !== 'splits') return undefined;
    const bytes = work.taken.groups
      .flat()
      .reduce(
        (sum, split) =>
          sum + (split.rows === undefined ? UNPACKED * split.bytes : split.rows * rowBytes(schema)),
        0,
      );
    return partsOf(bytes);
  }

  async units(ctx: ExecutionContext): Promise<readonly RowUnit[]> {
    const { work, schema, device, room, parts } = this.input;
    if (!('stream' in work)) {
      if (work.taken.kind !== 'exchanged')
        return this.#divide(work, this.estimatedParts ?? STREAM_PARTS, ctx);
      const units = await work.taken.exchanged.units(ctx);
      const taken = { kind: 'units', units: eachOf(units) } as const;
      return this.#divide({ ...work, taken }, partsOf(bytesOf(units)), ctx);
    }
    const stream = await work.stream(ctx);
    const at = { place: device.place, room };
    const units = unitsOfStream(schema, stream, at, ctx);
    const first: RowUnit[] = [];
    let isAll = false;
    while (first.length < FIRST_UNITS && !isAll) {
      const next = await units.next();
      if (next.done) isAll = true;
      else first.push(next.value);
    }
    if (isAll && first.length <= 1 && parts === undefined) return first;
    const taken = { kind: 'units', units: followed(first, units) } as const;
    const own: RowsWork = { source: schema, schema, operators: [], device, taken };
    return this.#divide(own, parts ?? (isAll ? partsOf(bytesOf(first)) : STREAM_PARTS), ctx);
  }

  async #divide(work: RowsWork, parts: number, ctx: ExecutionContext): Promise<readonly RowUnit[]> {
    const { by, device, room } = this.input;
    const at = { place: device.place, room };
    const division: Division = { by, parts };
    const byPart: RowPart[][] = Array.from({ length: parts }, () => []);
    for await (const { refs, sizes } of new RowTasks(work, ctx).divided(division)) {
      const found = refs.flatMap((ref, part) =>
        sizes[part].rows > 0 ? [{ ref, part, bytes: sizes[part].bytes }] : [],
      );
      const kept = await keepParts(found, at, ctx);
      kept.forEach((own, i) => byPart[found[i].part].push(own));
    }
    return this.#together(byPart).map((own) => new RowUnit(own, at));
  }

  /** Small parts that follow each other are one unit. */
  #together(byPart: readonly RowPart[][]): RowPart[][] {
    if (this.input.parts !== undefined) return [...byPart];
    const units: RowPart[][] = [];
    let bytes = Number.POSITIVE_INFINITY;
    for (const own of byPart) {
      if (own.length === 0) continue;
      const more = own.reduce((sum, part) => sum + part.bytes, 0);
      if (bytes + more > UNIT_BYTES) {
        units.push([...own]);
        bytes = more;
      } else {
        units[units.length - 1].push(...own);
        bytes += more;
      }
    }
    return units;
  }
}

function partsOf(bytes: number): number {
  return Math.max(1, Math.min(MOST_PARTS, Math.ceil(bytes / PART_BYTES)));
}

function bytesOf(units: readonly RowUnit[]): number {
  return units.reduce((sum, unit) => sum + unit.bytes, 0);
}

async function* followed(first: readonly RowUnit[], units: AsyncIterable<RowUnit>): AsyncGenerator<RowUnit> {
  yield* first;
  yield* units;
}
