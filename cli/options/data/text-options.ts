import { type Choice, choices } from '../../../api/check-objects.ts';
import { UsageError } from '../../../engine/errors.ts';
import type { ReadAnyOptions } from '../../../api/reading.ts';
import { formatOption, rowOptions } from './data-options.ts';
import { choice, list, listOf, readList, shown, text, toggle } from '../kinds.ts';
import type { Option, Values } from '../option.ts';

/** "user=int64,item=utf8" */
const columnTypesOption: Option<Readonly<Record<string, Choice<'textTypes'>>> | undefined> = {
  describe: `types of columns, such as user=int64,item=utf8 (${choices.textTypes.join(', ')})`,
  group: 'Text:',
  isList: true,
  fallback: undefined,
  read: (given, flag) => {
    const parts =
      typeof given === 'object' && given !== null && !Array.isArray(given)
        ? Object.entries(given).map((entry) => entry.join('='))
        : readList(given, flag);
    return Object.fromEntries(
      parts.map((part) => {
        const at = part.lastIndexOf('=');
        const [name, type] = [part.slice(0, Math.max(0, at)).trim(), part.slice(at + 1).trim()];
        const known = choices.textTypes.find((candidate) => candidate === type);
        if (known === undefined || name === '')
          throw new UsageError(
            `${flag} takes column=type with commas between, type one of ${list(choices.textTypes)}, got "${part}"`,
          );
        return [name, known];
      }),
    );
  },
};

/** A space and a tab count as they are; `\\t` is a tab, too. */
const delimiter: Option<string | undefined> = {
  describe: 'delimiter between the fields, such as ";", "::", " " or "\\t"',
  group: 'Text:',
  defaultText: 'by the first lines',
  fallback: undefined,
  read: (given, flag) => {
    if (typeof given === 'string' && given !== '') return given === '\\t' ? '\t' : given;
    throw new UsageError(`${flag} needs a text, got ${shown(given)}`);
  },
};

/** Properties of text files (CSV and similar, NDJSON) that a command reads. */
export const textOptions = {
  delimiter,
  quote: choice({
    describe: 'character around fields; none: quotes are part of the texts',
    group: 'Text:',
    choices: ['none', '"'],
    defaultText: '", but none between "::", and between tabs if no field is properly quoted',
  }),
  comment: text({
    describe: 'skip lines that begin with this text, anywhere; none: there are no comments',
    group: 'Text:',
    defaultText: '% or # at the beginning, where the number of fields is another one',
  }),
  noHeader: toggle({ describe: 'take the first row as data', group: 'Text:' }),
  columns: listOf({
    describe:
      'names of the columns of a file without a header, separated by commas; for NDJSON the fields to read',
    group: 'Text:',
  }),
  types: columnTypesOption,
  nullValues: listOf({
    describe: 'texts that mean a missing value in any column, separated by commas',
    group: 'Text:',
    defaultText: 'NA, NULL, None and the like in columns of numbers',
  }),
  decimalComma: toggle({ describe: 'take 4,5 as a number', group: 'Text:' }),
};

/** Flags for reading ratings. */
export const readOptions = { format: formatOption, ...rowOptions, ...textOptions };

export type ReadValues = Values<typeof readOptions>;

/** The flags as the library's options. */
export function readSpec({
  format,
  delimiter,
  quote,
  comment,
  noHeader,
  columns,
  types,
  nullValues,
  decimalComma,
}: Omit<ReadValues, keyof typeof rowOptions>): ReadAnyOptions {
  return {
    format,
    delimiter,
    quotes: quote === undefined ? undefined : quote !== 'none',
    comment: comment === 'none' ? '' : comment,
    header: noHeader ? false : undefined,
    columns,
    types,
    nullValues,
    decimalComma: decimalComma || undefined,
  };
}
