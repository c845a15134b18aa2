import { UsageError } from '../errors.ts';
import { DAY } from './civil.ts';

/** Seconds of a block of the table of changes, and of the steps in which its changes are looked for. */
const [BLOCK, STEP] = [365 * 86_400, 7 * 86_400];

/** The range of Intl in seconds since 1970; times beyond it have the offset of its end. */
const MOST_SECONDS = 8_640_000_000_000;

/** The offsets of a block: `offsets[k]` holds from `starts[k]` (seconds since 1970) on. */
interface Block {
  readonly starts: readonly number[];
  readonly offsets: readonly number[];
}

/**
 * The offsets of a time zone of the IANA database, or of a fixed one such as `+02:00`. Intl takes microseconds
 * for each time, so the changes of a year are found once and kept.
 */
export class TimeZone {
  readonly #format: Intl.DateTimeFormat;
  readonly #blocks = new Map<number, Block>();

  private constructor(format: Intl.DateTimeFormat) {
    this.#format = format;
  }

  static readonly #known = new Map<string, TimeZone>();

  /** Throws UsageError if there is no such zone. */
  static of(name: string): TimeZone {
    const known = TimeZone.#known.get(name);
    if (known !== undefined) return known;
    try {
      const options = { timeZone: name, timeZoneName: 'longOffset' } as const;
      const made = new TimeZone(new Intl.DateTimeFormat('en-US', options));
      TimeZone.#known.set(name, made);
      return made;
    } catch (error) {
      const advice =
        "Name a zone of the IANA database, such as 'America/Los_Angeles', or an offset: '+02:00'";
      throw new UsageError(`there is no time zone '${name}'`, { cause: error, advice });
    }
  }

  /** Seconds to add to UTC at a time, in seconds since 1970. */
  offsetAt(seconds: number): number {
    const { starts, offsets } = this.#block(seconds);
    let k = starts.length - 1;
    while (k > 0 && starts[k] > seconds) k--;
    return offsets[k];
  }

  /**
   * The time, in seconds since 1970, at which clocks show `local` (counted as if in UTC). Of two such times,
   * the one with the offset `preferred`, else the earlier one. A time that clocks leave out is moved on by as
   * much as they are; a midnight that they leave out is the time of their change.
   */
  timeOf(local: number, preferred?: number): number {
    const offsets = [this.offsetAt(local - 86_400), this.offsetAt(local + 86_400)];
    if (preferred !== undefined) offsets.unshift(preferred);
    const times = offsets.map((offset) => local - offset);
    const found = times.filter((time, i) => this.offsetAt(time) === offsets[i]);
    if (found.length > 0) return preferred === undefined ? Math.min(...found) : found[0];
    const moved = local - this.offsetAt(local - 86_400);
    return local % 86_400 === 0 ? this.#changeIn(local - Math.max(...offsets), moved) : moved;
  }

  /** The last change of the offset from `low` to `high`. */
  #changeIn(low: number, high: number): number {
    const before = this.offsetAt(low);
    let [from, to] = [low, high];
    while (to - from > 1) {
      const middle = Math.floor((from + to) / 2);
      if (this.offsetAt(middle) === before) from = middle;
      else to = middle;
    }
    return to;
  }

  #block(seconds: number): Block {
    const number = Math.floor(seconds / BLOCK);
    const known = this.#blocks.get(number);
    if (known !== undefined) return known;
    const [starts, offsets] = [[number * BLOCK], [this.#formatted(number * BLOCK)]];
    for (let at = number * BLOCK; at < (number + 1) * BLOCK; at += STEP) {
      const end = Math.min(at + STEP, (number + 1) * BLOCK);
      const [before, after] = [offsets[offsets.length - 1], this.#formatted(end)];
      if (before === after) continue;
      let [from, to] = [at, end];
      while (to - from > 1) {
        const middle = Math.floor((from + to) / 2);
        if (this.#formatted(middle) === before) from = middle;
        else to = middle;
      }
      starts.push(to);
      offsets.push(after);
    }
    const made = { starts, offsets };
    this.#blocks.set(number, made);
    return made;
  }

  /** Intl's text is `1/31/2024, GMT-08:00`; before standard times it has seconds, too. */
  #formatted(seconds: number): number {
    const time = Math.max(-MOST_SECONDS, Math.min(MOST_SECONDS, seconds)) * 1000;
    const [, sign, hours, minutes, rest] =
      /GMT([+-])(\d{2}):(\d{2})(?::(\d{2}))?$/.exec(this.#format.format(time)) ?? [];
    if (sign === undefined) return 0;
    const offset = Number(hours) * 3600 + Number(minutes) * 60 + Number(rest ?? 0);
    return sign === '-' ? -offset : offset;
  }
}

/** Days since 1970 and microseconds of the day, one of each a row. */
export interface DayTimes {
  readonly days: Float64Array;
  readonly micros: Float64Array;
}

/** Moves times of UTC to those that clocks of a zone show, in place; returns the offsets in seconds. */
export function toLocal({ days, micros }: DayTimes, zone: TimeZone): Float64Array {
  return days.map((day, i) => {
    const offset = zone.offsetAt(day * 86_400 + Math.floor(micros[i] / 1e6));
    move(days, micros, i, offset * 1e6);
    return offset;
  });
}

/** Moves local times to UTC, in place, see `TimeZone.timeOf`. */
export function toUtc({ days, micros }: DayTimes, zone: TimeZone, preferred?: Float64Array): void {
  for (let i = 0; i < days.length; i++) {
    const local = days[i] * 86_400 + Math.floor(micros[i] / 1e6);
    move(days, micros, i, (zone.timeOf(local, preferred?.[i]) - local) * 1e6);
  }
}

function move(days: Float64Array, micros: Float64Array, i: number, by: number): void {
  const ofDay = micros[i] + by;
  const more = Math.floor(ofDay / DAY);
  days[i] += more;
  micros[i] = ofDay - more * DAY;
}
