import type { Schema } from 'apache-arrow';
import { counted, formatBytes } from '../../engine/format.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import type { Side } from '../../engine/stream/operator.ts';
import { type JoinParams, mayBroadcast, otherSide } from '../dataflow/join/join-columns.ts';
import { JoinRows } from '../dataflow/join/join-rows.ts';
import { eachOf } from '../pipeline/read-splits.ts';
import {
  cutParts,
  type ExchangedPlan,
  type OtherRows,
  otherRows,
  type RowExchange,
  type RowPart,
  type RowsWork,
  RowUnit,
} from '../pipeline/task-input.ts';
import type { RowStage } from './exchange-room.ts';
import type { PartSizes } from './exchange.ts';
import {
  type DividedParts,
  dividedRows,
  estimatedBytes,
  type ExchangeInput,
  partsPlace,
  openInput,
  type OpenInput,
  belowOf,
  dividingStages,
  partsStage,
  reserveParts,
} from './exchanged-rows.ts';

export type JoinSides = Readonly<Record<Side, ExchangeInput>>;

/** All rows of one input of a join, in memory or in files. */
interface WholeSide {
  readonly unit: RowUnit;
  readonly parts: readonly RowPart[];
}

/**
 * Joins the rows of two inputs that have equal keys. If one input (side) is small, every task on the other
 * one reads all of it. Otherwise both are divided into parts by the hash of their keys, and a task reads the
 * same part of each.
 */
export class JoinedExchange implements RowExchange {
  readonly #params: JoinParams;
  readonly #sides: JoinSides;

  constructor(params: JoinParams, sides: JoinSides) {
    [this.#params, this.#sides] = [params, sides];
  }

  get inputs(): readonly ExchangedPlan[] {
    return [this.#sides.left, this.#sides.right];
  }

  get #sizes(): PartSizes {
    return this.#sides.left.sizes;
  }

  stages(): RowStage[] {
    const { left, right } = this.#sides;
    const { parallelism: threads } = left.device;
    const [whole] = this.#mayBeWhole();
    const isWhole = whole !== undefined && estimatedBytes(this.#sides[whole]) !== undefined;
    if (isWhole)
      return [
        ...dividingStages('of one side', 1, this.#sides[whole], threads),
        ...belowOf(this.#sides[otherSide(whole)]),
        partsStage('join with all of a side', this.#sizes.broadcast, threads),
      ];
    const sides = [estimatedBytes(left), estimatedBytes(right)];
    const most = sides.some((bytes) => bytes === undefined)
      ? undefined
      : Math.max(...sides.map((bytes) => bytes ?? 0));
    const parts = this.#sizes.partsOf(most);
    const both = sides.reduce((sum: number, bytes) => sum + (bytes ?? 0), 0);
    return [
      ...(['left', 'right'] as const).flatMap((side) =>
        dividingStages(`of the ${side} side by hash`, parts, this.#sides[side], threads),
      ),
      partsStage('join', Math.max(this.#sizes.part, both / parts), threads),
    ];
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
    const all = known.reduce((sum: number, bytes) => sum + (bytes ?? 0), 0);
    const where = known.includes(undefined) ? '' : `, ${this.#sides.left.room.placeOf(all, this.stages())}`;
    return first === undefined
      ? `exchange both sides ${hash}${where}`
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

  /** The sides that may be small enough to be read by every task. Sides known to be small are first. */
  #mayBeWhole(): Side[] {
    const bytes = (side: Side) => estimatedBytes(this.#sides[side]);
    return (['right', 'left'] as const)
      .filter((build) => mayBroadcast({ ...this.#params, build }))
      .filter((side) => (bytes(side) ?? 0) <= this.#sizes.broadcast)
      .toSorted((a, b) => Number(bytes(a) === undefined) - Number(bytes(b) === undefined));
  }

  async #whole(side: Side, ctx: ExecutionContext): Promise<WholeSide> {
    const input = this.#sides[side];
    const { work, units: all } = await openInput(input, ctx);
    const home = partsPlace(input);
    if (all !== undefined && all.length <= 1) return { unit: all[0] ?? new RowUnit([], home), parts: [] };
    const divided = await dividedRows(work, { by: { kind: 'evenly' }, parts: 1 }, home, ctx);
    const parts = divided.ofParts(0, 1);
    return { unit: new RowUnit(parts, home), parts };
  }

  async #broadcast(build: Side, unit: RowUnit, ctx: ExecutionContext): Promise<RowsWork> {
    const { work } = await openInput(this.#sides[otherSide(build)], ctx);
    const { schema, device } = this.#sides[build];
    const join = new JoinRows({ ...this.#params, build });
    return {
      ...work,
      schema: this.#schema(join),
      operators: [...work.operators, join],
      others: [...(work.others ?? []), (await otherRows(schema, device.place, ctx))(unit, true)],
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
    const [leftBytes, rightBytes] = [rows.left.total, rows.right.total];
    const build =
      mayBroadcast({ ...this.#params, build: 'left' }) && leftBytes < rightBytes ? 'left' : 'right';
    const join = new JoinRows({ ...this.#params, build });
    const { schema: columns, device } = this.#sides[build];
    const streamed = rows[otherSide(build)].bytes;
    const most = this.#mostStreamed(build);
    const bytes = rows[build].bytes.map((own, part) => own + Math.min(streamed[part], most));
    await reserveParts('join', [rows.left, rows.right], { input: this.#sides[build], bytes }, ctx);
    const units = this.#unitsOf(rows, build, await otherRows(columns, device.place, ctx));
    const probe = this.#sides[otherSide(build)];
    return {
      source: probe.schema,
      schema: this.#schema(join),
      operators: [join],
      device: probe.device,
      bytes: leftBytes + rightBytes,
      taken: { kind: 'units', units },
    };
  }

  async #open(side: Side, whole: WholeSide | undefined, ctx: ExecutionContext): Promise<OpenInput> {
    const input = this.#sides[side];
    if (whole === undefined) return openInput(input, ctx);
    const { schema, device } = input;
    // The rows were read into a single part, of which each task made one partition. Each partition becomes
    // the input of one task (a unit).
    const units = whole.parts.map((part) => new RowUnit([part], partsPlace(input)));
    const taken = { kind: 'units', units: eachOf(units) } as const;
    return { work: { source: schema, schema, operators: [], device, taken }, bytes: whole.unit.bytes };
  }

  #divide(side: Side, { work }: OpenInput, parts: number, ctx: ExecutionContext): Promise<DividedParts> {
    const by = { kind: 'hash', columns: [...this.#params.keys[side]] } as const;
    return dividedRows(work, { by, parts }, partsPlace(this.#sides[side]), ctx);
  }

  /**
   * Yields the inputs of the join's tasks (units). Each has a part of one side, whose rows are streamed, and
   * the same part of the other side, the build side, which the task reads first. Small parts are combined. A
   * large part of the streamed side is cut into several units with the same build side. Units are made on
   * demand.
   */
  async *#unitsOf(
    rows: Readonly<Record<Side, DividedParts>>,
    build: Side,
    other: (unit: RowUnit, isShared: boolean) => OtherRows,
  ): AsyncGenerator<RowUnit> {
    const [probe, held] = [rows[otherSide(build)], rows[build]];
    const bytesAt = (part: number) => probe.bytes[part] + held.bytes[part];
    const most = this.#mostStreamed(build);
    const home = partsPlace(this.#sides[build]);
    for (let part = 0; part < probe.parts;) {
      const first = part;
      let bytes = bytesAt(part++);
      while (part < probe.parts && bytes + bytesAt(part) <= this.#sizes.unit) bytes += bytesAt(part++);
      if (bytes === 0) continue;
      const pieces = cutParts(probe.ofParts(first, part), most);
      const unit = new RowUnit(held.ofParts(first, part), { ...home, uses: pieces.length });
      const others = [other(unit, pieces.length > 1)];
      for (const piece of pieces) yield new RowUnit(piece, { ...home, others });
    }
  }

  /** Most bytes of the streamed side for one task: fewer where memory is scarce. */
  #mostStreamed(build: Side): number {
    if (!mayBroadcast({ ...this.#params, build })) return Number.POSITIVE_INFINITY;
    const { room, device } = this.#sides[build];
    const share = room.bytes / partsStage('', 1, device.parallelism).bytes;
    return Math.min(this.#sizes.streamed, Math.max(this.#sizes.part, share));
  }

  #schema(join: JoinRows): Schema {
    return join.outputSchema(this.#sides.left.schema, this.#sides.right.schema);
  }
}
