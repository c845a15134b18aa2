import type { Schema } from 'apache-arrow';
import { counted, formatBytes } from '../../engine/format.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import type { Side } from '../../engine/stream/binary-operator.ts';
import { type JoinParams, mayBroadcast, otherSide } from '../dataflow/join/join-kinds.ts';
import { JoinRows } from '../dataflow/join/join-rows.ts';
import { RowUnit, otherRows, type OtherRows, type RowPart } from '../pipeline/row-unit.ts';
import type { RowExchange, RowsWork } from '../pipeline/rows-work.ts';
import { eachOf } from '../pipeline/split-tasks.ts';
import {
  bytesOf,
  dividedRows,
  estimatedBytes,
  type ExchangeInput,
  homeOf,
  type OpenInput,
  opened,
} from './exchange-input.ts';
import type { PartSizes } from './part-sizes.ts';

export type JoinSides = Readonly<Record<Side, ExchangeInput>>;

/** All rows of a side, in memory or in files. */
interface WholeSide {
  readonly unit: RowUnit;
  readonly parts: readonly RowPart[];
}

/**
 * The rows of two inputs with equal keys. Where one side is small, all tasks over the other side take all of it;
 * else both are divided by the hash of their keys, and a task takes a part of each.
 */
export class JoinedExchange implements RowExchange {
  readonly #params: JoinParams;
  readonly #sides: JoinSides;

  constructor(params: JoinParams, sides: JoinSides) {
    [this.#params, this.#sides] = [params, sides];
  }

  get #sizes(): PartSizes {
    return this.#sides.left.sizes;
  }

  describe(): string {
    const [bound] = [formatBytes(this.#sizes.broadcast)];
    for (const side of this.#mayBeWhole()) {
      const bytes = estimatedBytes(this.#sides[side]);
      if (bytes !== undefined)
        return `every task takes all of the ${side} side: about ${formatBytes(bytes)}, and up to ${bound} are sent whole`;
    }
    const known = (['left', 'right'] as const).map((side) => estimatedBytes(this.#sides[side]));
    const most = Math.max(...known.map((bytes) => bytes ?? 0));
    const { left, right } = this.#params.keys;
    const hash = `by hash of ${left.join(', ')} and of ${right.join(', ')} to ${counted(this.#sizes.partsOf(most), 'part')}`;
    const [first] = this.#mayBeWhole();
    return first === undefined
      ? `exchange both sides ${hash}`
      : `every task takes all of the ${first} side if it is at most ${bound}, else exchange both sides ${hash}`;
  }

  async begin(ctx: ExecutionContext): Promise<RowsWork> {
    const whole: Partial<Record<Side, WholeSide>> = {};
    for (const side of this.#mayBeWhole()) {
      const found = await this.#whole(side, ctx);
      if (found.unit.bytes <= this.#sizes.broadcast) return this.#broadcast(side, found.unit, ctx);
      whole[side] = found;
    }
    return this.#divided(whole, ctx);
  }

  /** The sides that may be small enough, those first of which that is known. */
  #mayBeWhole(): Side[] {
    const bytes = (side: Side) => estimatedBytes(this.#sides[side]);
    return (['right', 'left'] as const)
      .filter((build) => mayBroadcast({ ...this.#params, build }))
      .filter((side) => (bytes(side) ?? 0) <= this.#sizes.broadcast)
      .toSorted((a, b) => Number(bytes(a) === undefined) - Number(bytes(b) === undefined));
  }

  async #whole(side: Side, ctx: ExecutionContext): Promise<WholeSide> {
    const input = this.#sides[side];
    const { work, units: all } = await opened(input, ctx);
    const home = homeOf(input);
    if (all !== undefined && all.length <= 1) return { unit: all[0] ?? new RowUnit([], home), parts: [] };
    const [parts] = await dividedRows(work, { by: { kind: 'evenly' }, parts: 1 }, home, ctx);
    return { unit: new RowUnit(parts, home), parts };
  }

  async #broadcast(build: Side, unit: RowUnit, ctx: ExecutionContext): Promise<RowsWork> {
    const { work } = await opened(this.#sides[otherSide(build)], ctx);
    const { schema, device } = this.#sides[build];
    const join = new JoinRows({ ...this.#params, build });
    return {
      ...work,
      schema: this.#schema(join),
      operators: [...work.operators, join],
      others: [...(work.others ?? []), await otherRows(schema, unit, device.place, ctx)],
    };
  }

  async #divided(whole: Partial<Record<Side, WholeSide>>, ctx: ExecutionContext): Promise<RowsWork> {
    const left = await this.#open('left', whole.left, ctx);
    const right = await this.#open('right', whole.right, ctx);
    const parts =
      left.bytes === undefined || right.bytes === undefined
        ? this.#sizes.partsOf(undefined)
        : this.#sizes.partsOf(Math.max(left.bytes, right.bytes));
    const rows = {
      left: await this.#divide('left', left, parts, ctx),
      right: await this.#divide('right', right, parts, ctx),
    };
    const [leftBytes, rightBytes] = [bytesOf(rows.left.flat()), bytesOf(rows.right.flat())];
    const build =
      mayBroadcast({ ...this.#params, build: 'left' }) && leftBytes < rightBytes ? 'left' : 'right';
    const join = new JoinRows({ ...this.#params, build });
    const units = await this.#unitsOf(rows, build, ctx);
    const probe = this.#sides[otherSide(build)];
    return {
      source: probe.schema,
      schema: this.#schema(join),
      operators: [join],
      device: probe.device,
      bytes: leftBytes + rightBytes,
      taken: { kind: 'units', units: eachOf(units) },
    };
  }

  async #open(side: Side, whole: WholeSide | undefined, ctx: ExecutionContext): Promise<OpenInput> {
    const input = this.#sides[side];
    if (whole === undefined) return opened(input, ctx);
    const { schema, device } = input;
    // One partition a task made it: each is a unit again.
    const units = whole.parts.map((part) => new RowUnit([part], homeOf(input)));
    const taken = { kind: 'units', units: eachOf(units) } as const;
    return { work: { source: schema, schema, operators: [], device, taken }, bytes: whole.unit.bytes };
  }

  #divide(side: Side, { work }: OpenInput, parts: number, ctx: ExecutionContext): Promise<RowPart[][]> {
    const by = { kind: 'hash', columns: [...this.#params.keys[side]] } as const;
    return dividedRows(work, { by, parts }, homeOf(this.#sides[side]), ctx);
  }

  /** A unit for each part of the streamed side with that of the held side; small ones together, large ones cut. */
  async #unitsOf(
    rows: Readonly<Record<Side, readonly RowPart[][]>>,
    build: Side,
    ctx: ExecutionContext,
  ): Promise<RowUnit[]> {
    const units: RowUnit[] = [];
    const [probe, held] = [rows[otherSide(build)], rows[build]];
    const isCut = mayBroadcast({ ...this.#params, build });
    for (let part = 0; part < probe.length;) {
      const [streamed, other]: [RowPart[], RowPart[]] = [[], []];
      let bytes = 0;
      do {
        streamed.push(...probe[part]);
        other.push(...held[part]);
        bytes += bytesOf(probe[part]) + bytesOf(held[part]);
        part++;
      } while (part < probe.length && bytes + bytesOf(probe[part]) + bytesOf(held[part]) <= this.#sizes.unit);
      if (bytes === 0) continue;
      units.push(...(await this.#cut(streamed, other, { build, isCut }, ctx)));
    }
    return units;
  }

  async #cut(
    streamed: readonly RowPart[],
    other: readonly RowPart[],
    { build, isCut }: { readonly build: Side; readonly isCut: boolean },
    ctx: ExecutionContext,
  ): Promise<RowUnit[]> {
    const pieces = isCut ? piecesOf(streamed, this.#sizes.streamed) : [streamed];
    const { schema, device } = this.#sides[build];
    const home = homeOf(this.#sides[build]);
    const unit = new RowUnit(other, { ...home, uses: pieces.length });
    const others: OtherRows[] = [await otherRows(schema, unit, device.place, ctx)];
    return pieces.map((piece) => new RowUnit(piece, { ...home, others }));
  }

  #schema(join: JoinRows): Schema {
    return join.outputSchema(this.#sides.left.schema, this.#sides.right.schema);
  }
}

function piecesOf(parts: readonly RowPart[], most: number): RowPart[][] {
  const pieces: RowPart[][] = [[]];
  let bytes = 0;
  for (const part of parts) {
    if (bytes > 0 && bytes + part.bytes > most) {
      pieces.push([]);
      bytes = 0;
    }
    pieces[pieces.length - 1].push(part);
    bytes += part.bytes;
  }
  return pieces;
}
