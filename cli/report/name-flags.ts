import { flagName, type Options } from '../options/option.ts';

/** Library options that have another name as a flag. */
const renamed: Readonly<Record<string, string>> = {
  overwrite: 'force',
  validation: 'test',
  coldStartStrategy: 'coldStart',
  backend: 'parquetBackend',
  format: 'from',
  quotes: 'quote',
  idCol: 'itemNamesIdCol',
  nameCol: 'itemNamesCol',
  genreCol: 'itemNamesGenreCol',
};

/** "types: { movieId: 'int64' }" */
const typeOfColumn = /types: \{ ("[^"]*"|\w+): '(\w+)' \}/g;

function shellWord(name: string, type: string): string {
  return name.startsWith('"') ? `'${name.slice(1, -1)}=${type}'` : `${name}=${type}`;
}

/**
 * Replaces the library's options by a command's flags: "Raise regParam (λ)" becomes "Raise --reg-param (λ)",
 * "onBadRows: 'skip'" becomes "--on-bad-rows skip", "overwrite: true" becomes "--force". A name in camel case
 * is always replaced; a name that is also an ordinary word ("rank") only if its value follows, or "the
 * option" precedes it. Names in quotes, lines of files, and texts that already contain flags stay unchanged.
 */
export function nameFlags(text: string, options: Options): string {
  const names = [...Object.keys(options), ...Object.keys(renamed).filter((name) => renamed[name] in options)];
  if (names.length === 0 || /(^|[\s(])--[a-z]/.test(text)) return text;
  const value = `: (true\\b|'[^']*'|"\\w*"|-?\\d[\\w.]*\\b)`;
  const quoted = '"(?:[^"\\\\]|\\\\.)*"';
  const pattern = new RegExp(
    `${quoted}|(?<![\\w"'/.-])(the option )?(${names.join('|')})(?:${value}|(?![\\w"'/]))`,
    'g',
  );
  const inFlags = text.replaceAll(
    pattern,
    (all: string, named: string | undefined, name: string | undefined, given: string | undefined) => {
      if (name === undefined) return all;
      if (given === undefined && named === undefined && !/[A-Z]/.test(name)) return all;
      const flag = `--${flagName(name in options ? name : renamed[name])}`;
      return given === undefined || given === 'true' ? flag : `${flag} ${given.replaceAll(/["']/g, '')}`;
    },
  );
  const bare = inFlags.replaceAll(/\{ (--[^{}]*) \}/g, '$1');
  return 'types' in options
    ? bare.replaceAll(typeOfColumn, (_, name: string, type: string) => `--types ${shellWord(name, type)}`)
    : bare;
}
