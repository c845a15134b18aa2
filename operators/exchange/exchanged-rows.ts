import { counted } from '../../engine/format.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import type { ChainOperator } from '../pipeline/run-chain.ts';
import type { RowExchange, RowsWork } from '../pipeline/rows-work.ts';
import { type PartsHome, type RowPart, RowUnit } from '../pipeline/row-unit.ts';
import { eachOf } from '../pipeline/split-tasks.ts';
import { describeExchange, type Exchange } from './exchange.ts';
import {
  bytesAfter,
  bytesOf,
  dividedRows,
  estimatedBytes,
  type ExchangeInput,
  homeOf,
  whereKept,
  opened,
} from './exchange-input.ts';
import { rangeBounds } from './range-bounds.ts';

export interface ExchangedOptions {
  readonly by: Exchange;
  /** The number of parts where it is given: then each part is a task. */
  readonly parts: number | undefined;
  /** The operators on the rows of each part. */
  readonly after: readonly ChainOperator[];
}

/** The rows of an input by the parts of an exchange. */
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
    const about = bytes === undefined ? '' : `, ${whereKept(bytes, this.#input)}`;
    const to = number === undefined ? 'as many parts as the rows need' : counted(number, 'part');
    return `exchange ${describeExchange(by)} to ${to}${about}`;
  }

  async begin(ctx: ExecutionContext): Promise<RowsWork> {
    const { parts: given, after } = this.#options;
    const { schema, device } = this.#input;
    const { work, bytes, units: all } = await opened(this.#input, ctx);
    const isOne = given === undefined && all !== undefined && all.length <= 1;
    const parts = given ?? (bytes === undefined ? undefined : this.#input.sizes.partsOf(bytes));
    const home = homeOf(this.#input);
    const units = isOne
      ? all
      : unitsOfParts(
          await this.#divided(work, parts, ctx),
          home,
          given === undefined ? this.#input.sizes.unit : 0,
        );
    return {
      source: schema,
      schema,
      operators: after,
      device,
      bytes: bytesOf(units),
      taken: { kind: 'units', units: eachOf(units) },
    };
  }

  async #divided(work: RowsWork, parts: number | undefined, ctx: ExecutionContext): Promise<RowPart[][]> {
    const { by } = this.#options;
    const { sizes } = this.#input;
    const home = homeOf(this.#input);
    if (by.kind !== 'range')
      return dividedRows(work, { by, parts: parts ?? sizes.partsOf(undefined) }, home, ctx);
    // All units are there before the bounds are known.
    const all = await collected(work);
    const number = parts ?? sizes.partsOf(bytesAfter(all));
    if (number === 1) return dividedRows(all, { by: { kind: 'evenly' }, parts: 1 }, home, ctx);
    const bounds = await rangeBounds(all, { keys: by.keys, parts: number, place: home.place }, ctx);
    return bounds === undefined ? [] : dividedRows(all, { by, parts: number, bounds }, home, ctx);
  }
}

/** The same work, with units that can be gone through again. */
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

/** A unit for each part, or for parts that follow each other and are smaller than `least` bytes together. */
function unitsOfParts(byPart: readonly RowPart[][], home: PartsHome, least: number): RowUnit[] {
  const units: RowPart[][] = [];
  let bytes = Number.POSITIVE_INFINITY;
  for (const own of byPart) {
    if (own.length === 0 && least > 0) continue;
    const more = bytesOf(own);
    if (least === 0 || bytes + more > least) {
      units.push([...own]);
      bytes = more;
    } else {
      units[units.length - 1].push(...own);
      bytes += more;
    }
  }
  return units.map((own) => new RowUnit(own, home));
}
