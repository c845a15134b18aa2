import { counted } from '../../engine/format.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import type { ChainOperator } from '../pipeline/run-chain.ts';
import type { RowExchange, RowsWork } from '../pipeline/rows-work.ts';
import { type PartsHome, RowUnit } from '../pipeline/row-unit.ts';
import { eachOf } from '../pipeline/split-tasks.ts';
import { DividedParts } from './divided-parts.ts';
import { describeExchange, type Exchange } from './exchange.ts';
import {
  bytesAfter,
  bytesOf,
  dividedRows,
  estimatedBytes,
  type ExchangeInput,
  homeOf,
  opened,
} from './exchange-input.ts';
import type { RowStage } from './exchange-room.ts';
import { rangeBounds } from './range-bounds.ts';
import { dividingStages, partsStage } from './row-stages.ts';

export interface ExchangedOptions {
  readonly by: Exchange;
  /** Number of parts if the caller chose it; then each part is one task. */
  readonly parts: number | undefined;
  /** Operators on the rows of each part. */
  readonly after: readonly ChainOperator[];
}

/** The rows of an input, divided by an exchange. */
export class ExchangedRows implements RowExchange {
  readonly #input: ExchangeInput;
  readonly #options: ExchangedOptions;

  constructor(input: ExchangeInput, options: ExchangedOptions) {
    [this.#input, this.#options] = [input, options];
  }

  describe(): string {
    const { by, parts } = this.#options;
    const bytes = estimatedBytes(this.#input);
    const number = parts ?? (bytes === undefined ? undefined : this.#input.sizes.partsOf(bytes));
    const about = bytes === undefined ? '' : `, ${this.#input.room.placeOf(bytes, this.stages())}`;
    const to = number === undefined ? 'as many parts as the rows need' : counted(number, 'part');
    return `exchange ${describeExchange(by)} to ${to}${about}`;
  }

  stages(): RowStage[] {
    const { by, parts: given } = this.#options;
    const { sizes, device } = this.#input;
    const bytes = estimatedBytes(this.#input);
    const parts = given ?? sizes.partsOf(bytes);
    const exchange = describeExchange(by);
    const ofPart = Math.max(sizes.part, (bytes ?? 0) / parts);
    return [
      ...dividingStages(exchange, parts, this.#input, device.parallelism),
      partsStage(`after the exchange ${exchange}`, ofPart, device.parallelism),
    ];
  }

  async begin(ctx: ExecutionContext): Promise<RowsWork> {
    const { parts: given, after } = this.#options;
    const { schema, device } = this.#input;
    const { work, bytes, units: all } = await opened(this.#input, ctx);
    const isOne = given === undefined && all !== undefined && all.length <= 1;
    const parts = given ?? (bytes === undefined ? undefined : this.#input.sizes.partsOf(bytes));
    const home = homeOf(this.#input);
    const own = { source: schema, schema, operators: after, device };
    if (isOne) return { ...own, bytes: bytesOf(all), taken: { kind: 'units', units: eachOf(all) } };
    const divided = await this.#divided(work, parts, ctx);
    const units = eachUnit(divided, home, given === undefined ? this.#input.sizes.unit : 0);
    return { ...own, bytes: divided.total, taken: { kind: 'units', units } };
  }

  async #divided(work: RowsWork, parts: number | undefined, ctx: ExecutionContext): Promise<DividedParts> {
    const { by } = this.#options;
    const { sizes } = this.#input;
    const home = homeOf(this.#input);
    if (by.kind !== 'range')
      return dividedRows(work, { by, parts: parts ?? sizes.partsOf(undefined) }, home, ctx);
    // The bounds of ranges can be chosen only when all rows have been read.
    const all = await collected(work);
    const number = parts ?? sizes.partsOf(bytesAfter(all));
    if (number === 1) return dividedRows(all, { by: { kind: 'evenly' }, parts: 1 }, home, ctx);
    const bounds = await rangeBounds(all, { keys: by.keys, parts: number, place: home.place }, ctx);
    if (bounds === undefined) return new DividedParts(0);
    return dividedRows(all, { by, parts: number, bounds }, home, ctx);
  }
}

/** The same work, with units that can be read twice. */
async function collected(work: RowsWork): Promise<RowsWork> {
  const { taken } = work;
  if (taken.kind !== 'units') return work;
  const units: RowUnit[] = [];
  for await (const unit of taken.units) units.push(unit);
  return {
    ...work,
    bytes: bytesOf(units),
    taken: { kind: 'units', units: { [Symbol.asyncIterator]: () => eachOf(units) } },
  };
}

/**
 * Yields the inputs of the tasks after the exchange (units), made on demand. If `least` is 0, each part is a
 * unit. Otherwise consecutive parts are joined up to `least` bytes; a larger part is a unit of its own, and
 * units without bytes are left out.
 */
async function* eachUnit(divided: DividedParts, home: PartsHome, least: number): AsyncGenerator<RowUnit> {
  for (let part = 0; part < divided.parts;) {
    const first = part;
    let bytes = divided.bytes[part++];
    if (least > 0)
      while (part < divided.parts && bytes + divided.bytes[part] <= least) bytes += divided.bytes[part++];
    if (bytes > 0 || least === 0) yield new RowUnit(divided.ofParts(first, part), home);
  }
}
