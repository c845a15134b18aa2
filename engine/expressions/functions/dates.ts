import { UsageError } from '../../errors.ts';
import { nearest, spelled } from '../../nearest.ts';
import { localTimes } from '../cast.ts';
import { DAY, dateOf, dayOf, daysOf, monthOf, yearOf } from '../civil.ts';
import { isInteger, isNumber, isTime, isTimestamp, type ValueType, widen, zoneOf } from '../types.ts';
import { maskOf, numbersOf, splitTimes, textsOf, timestamps, type Values } from '../values.ts';
import { TimeZone, toLocal, toUtc } from '../zones.ts';
import { type Argument, type Functions, type FunctionSpec, numberResult, type Rows } from './function.ts';

/**
 * Parts of dates and timestamps, in the zone that is named, else in the column's zone, else in UTC. Weeks begin
 * on Monday; dayOfWeek is 1 on Sunday, as in Spark.
 */
export const dates: Functions = {
  year: part((days) => yearOf(dateOf(days))),
  month: part((days) => monthOf(dateOf(days))),
  day: part((days) => dayOf(dateOf(days))),
  dayOfWeek: part((days) => ((((days + 4) % 7) + 7) % 7) + 1),
  hour: part((_, micros) => Math.floor(micros / 3.6e9)),
  truncate: {
    takes: "(time, 'unit', 'zone')",
    sign: ([time, unit, zone, more]) => (more ? undefined : ofTime(time, { unit, zone })),
    kernel: ([time, unit, zone], rows) => truncate(time, textsOf(unit)[0], zone, rows),
  },
  dateAdd: {
    takes: "(time, count, 'unit', 'zone')",
    sign: ([time, count, unit, zone, more]) => (more ? undefined : ofTime(time, { count, unit, zone })),
    kernel: add,
    mayFail: true,
  },
  atZone: {
    takes: "(time, 'zone')",
    sign: ([time, zone, more]) => {
      const name = zone && constantText(zone);
      if (more || name === undefined || !(isTimestamp(time.type) || time.type === 'null')) return undefined;
      TimeZone.of(name);
      return { args: [time.type, 'utf8'], result: `timestamp(${name})` };
    },
    kernel: ([time], rows) => ({ ...time, type: rows.type }),
  },
  timestampSeconds: { takes: '(seconds)', sign: seconds, kernel: fromSeconds, mayFail: true },
  unixSeconds: {
    takes: '(time)',
    sign: ([time, more]) => (more ? undefined : ofTime(time, {}, 'int64')),
    kernel: toSeconds,
  },
};

/** The text of a constant argument. */
function constantText({ constant }: Argument): string | undefined {
  return constant?.form === 'text' ? constant.values[0] : undefined;
}

interface TimeArguments {
  readonly count?: Argument;
  /** A constant of `timeUnits`. Of dates it is a day or more. */
  readonly unit?: Argument;
  /** A constant. */
  readonly zone?: Argument;
}

/** The signature of a time and these arguments; `result` is the time's type by default. */
function ofTime(time: Argument, given: TimeArguments, result = time.type) {
  const { count, unit, zone } = given;
  if (!isTime(time.type) && time.type !== 'null') return undefined;
  if ('count' in given && (count === undefined || widen(count.type, 'int64') !== 'int64')) return undefined;
  if ('unit' in given) {
    const name = unit && constantText(unit)?.toLowerCase();
    if (name === undefined) return undefined;
    const units = time.type === 'date' && count !== undefined ? Object.keys(firstDays) : timeUnits;
    if (!units.includes(name))
      throw new UsageError(`'${name}' is no unit of ${time.type === 'date' ? 'dates' : 'times'}`, {
        advice: spelled(nearest(name, units), `The units are: ${units.join(', ')}`),
      });
  }
  if (zone !== undefined) {
    const name = constantText(zone);
    if (name === undefined) return undefined;
    TimeZone.of(name);
  }
  const types: ValueType[] = ['unit' in given ? 'utf8' : 'null', zone ? 'utf8' : 'null'];
  const others = types.filter((type) => type !== 'null');
  return { args: [time.type, ...(count ? (['int64'] as const) : []), ...others], result };
}

function part(of: (days: number, micros: number) => number): FunctionSpec {
  return {
    takes: "(time, 'zone')",
    sign: ([time, zone, more]) => (more ? undefined : ofTime(time, { zone }, 'int32')),
    kernel: ([time, zone], rows) => {
      const { days, micros } = localTimes(time, zoneNamed(time, zone));
      return numberResult(
        rows,
        days.map((day, i) => of(day, micros[i])),
      );
    },
  };
}

/** The zone in which a time's days and hours are meant; dates have none. */
function zoneNamed(time: Values, zone: Values | undefined): string | undefined {
  if (time.type === 'date') return undefined;
  return zone?.form === 'text' ? zone.values[0] : zoneOf(time.type);
}

/** The first day of the unit (year, quarter, ...) that contains a day. */
const firstDays: Readonly<Record<string, (day: number) => number>> = {
  year: (day) => daysOf(yearOf(dateOf(day)), 1, 1),
  quarter: (day) => {
    const date = dateOf(day);
    return daysOf(yearOf(date), Math.floor((monthOf(date) - 1) / 3) * 3 + 1, 1);
  },
  month: (day) => daysOf(yearOf(dateOf(day)), monthOf(dateOf(day)), 1),
  week: (day) => day - ((((day + 3) % 7) + 7) % 7),
  day: (day) => day,
};

const unitMicros: Readonly<Record<string, number>> = { hour: DAY / 24, minute: 60e6, second: 1e6 };

const timeUnits = [...Object.keys(firstDays), ...Object.keys(unitMicros)];

/**
 * The start of a unit in the local time of a zone. If clocks are set back, an hour that occurs twice begins
 * twice, and a day at its first midnight.
 */
function truncate(time: Values, unit: string, zone: Values | undefined, rows: Rows): Values {
  const name = unit.toLowerCase();
  const own = zoneNamed(time, zone);
  const { days, micros, offsets } = localTimes(time, own);
  const shape = { type: rows.type, length: rows.length, valid: rows.valid, constant: rows.constant };
  const ofDays = Object.hasOwn(firstDays, name);
  if (ofDays) {
    const first = days.map(firstDays[name]);
    if (rows.type === 'date') return numberResult(rows, first);
    days.set(first);
    micros.fill(0);
  } else {
    if (rows.type === 'date') return time;
    const size = unitMicros[name];
    for (let i = 0; i < micros.length; i++) micros[i] -= micros[i] % size;
  }
  if (own !== undefined) toUtc({ days, micros }, TimeZone.of(own), ofDays ? undefined : offsets);
  return timestamps(days, micros, shape);
}

const unitDays: Readonly<Record<string, number>> = { week: 7, day: 1 };
const unitMonths: Readonly<Record<string, number>> = { year: 12, quarter: 3, month: 1 };

/**
 * Adds days and longer units in the local time of a zone: the hour stays, and a day beyond a month's end
 * becomes its last one. Hours and shorter units are added to the time itself.
 */
function add([time, count, unit, zone]: readonly Values[], rows: Rows): Values {
  const name = textsOf(unit)[0].toLowerCase();
  const own = Object.hasOwn(unitMicros, name) ? undefined : zoneNamed(time, zone);
  const times = splitTimes(time);
  const [days, micros] = [times.days.slice(), times.micros];
  const offsets = own === undefined ? undefined : toLocal({ days, micros }, TimeZone.of(own));
  const [counts, mask, from] = [numbersOf(count), maskOf(count), maskOf(time)];
  const [outDays, outMicros] = [new Float64Array(rows.length), new Float64Array(rows.length)];
  for (let i = 0; i < rows.length; i++) {
    if (rows.valid !== undefined && rows.valid[i] === 0) continue;
    const [day, ofDay, n] = [days[i & from], micros[i & from], counts[i & mask]];
    const added = Object.hasOwn(unitMicros, name) ? ofDay + n * unitMicros[name] : ofDay;
    const more = Math.floor(added / DAY);
    outDays[i] = more + (Object.hasOwn(unitMonths, name) ? monthsAfter(day, n * unitMonths[name]) : day);
    outDays[i] += n * (unitDays[name] ?? 0);
    outMicros[i] = added - more * DAY;
    // Numbers of days that dates and timestamps can have.
    if (Math.abs(n) <= 1e13 && Math.abs(outDays[i]) <= (rows.type === 'date' ? 2e9 : 1e8)) continue;
    rows.fail(i, `${n} ${name}s are too many to add`);
    [outDays[i], outMicros[i]] = [0, 0];
  }
  if (rows.type === 'date') return numberResult(rows, outDays);
  const preferred = offsets && outDays.map((_, i) => offsets[i & from]);
  if (own !== undefined) toUtc({ days: outDays, micros: outMicros }, TimeZone.of(own), preferred);
  const { type, length, valid, constant } = rows;
  return timestamps(outDays, outMicros, { type, length, valid, constant });
}

function monthsAfter(day: number, months: number): number {
  const date = dateOf(day);
  const month = yearOf(date) * 12 + monthOf(date) - 1 + months;
  const first = (index: number) => daysOf(Math.floor(index / 12), index - Math.floor(index / 12) * 12 + 1, 1);
  return Math.min(first(month) + dayOf(date), first(month + 1)) - 1;
}

function seconds([value, more]: readonly Argument[]) {
  if (value === undefined || more !== undefined) return undefined;
  if (!isNumber(value.type) && value.type !== 'null') return undefined;
  return {
    args: [isInteger(value.type) ? ('int64' as const) : ('float64' as const)],
    result: 'timestamp' as const,
  };
}

/** Fractions are rounded to microseconds; NaN becomes null. */
function fromSeconds([value]: readonly Values[], rows: Rows): Values {
  const numbers = numbersOf(value);
  const valid = numbers.some(Number.isNaN) ? (rows.valid ?? new Uint8Array(rows.length).fill(1)) : rows.valid;
  const days = new Float64Array(rows.length);
  const micros = new Float64Array(rows.length);
  for (let i = 0; i < numbers.length; i++) {
    if (valid !== undefined && valid[i] === 0) continue;
    if (Number.isNaN(numbers[i]) && valid) valid[i] = 0;
    else if (Math.abs(numbers[i]) > 9.2e12) rows.fail(i, `${numbers[i]} seconds are beyond timestamps`);
    else {
      days[i] = Math.floor(numbers[i] / 86_400);
      micros[i] = Math.round((numbers[i] - days[i] * 86_400) * 1e6);
    }
  }
  return timestamps(days, micros, { type: rows.type, length: rows.length, valid, constant: rows.constant });
}

function toSeconds([time]: readonly Values[], rows: Rows): Values {
  const { days, micros } = splitTimes(time);
  return numberResult(
    rows,
    days.map((day, i) => day * 86_400 + Math.floor(micros[i] / 1e6)),
  );
}

/** The difference of two dates in days; of other times in seconds. */
export const timeDifference: Pick<FunctionSpec, 'sign' | 'kernel'> = {
  sign: (args) => {
    if (args.length !== 2 || !args.every(({ type }) => isTime(type) || type === 'null')) return undefined;
    const type = args.reduce<ValueType>((common, one) => widen(common, one.type) ?? common, 'null');
    if (!isTime(type)) return undefined;
    return { args: [type, type], result: type === 'date' ? 'int64' : 'float64' };
  },
  kernel: ([left, right], rows) => {
    const [a, b, maskA, maskB] = [splitTimes(left), splitTimes(right), maskOf(left), maskOf(right)];
    const out = new Float64Array(rows.length);
    for (let i = 0; i < out.length; i++) {
      const days = a.days[i & maskA] - b.days[i & maskB];
      const micros = a.micros[i & maskA] - b.micros[i & maskB];
      out[i] = left.type === 'date' ? days : (days * DAY + micros) / 1e6;
    }
    return numberResult(rows, out);
  },
};
