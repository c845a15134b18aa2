import yargs, { type Argv } from 'yargs';
import { flagName, type Options } from './options/option.ts';

/** The parser of all command lines, without its commands. It throws errors; it neither prints nor exits. */
export function baseParser(): Argv {
  return yargs([])
    .scriptName('factorflow')
    .locale('en')
    .exitProcess(false)
    .fail(false)
    .version(false)
    .help(false)
    .parserConfiguration({
      // Each flag has one spelling, and its text stays unchanged: `read` of the option checks it.
      'camel-case-expansion': false,
      'parse-numbers': false,
      'parse-positional-numbers': false,
      'dot-notation': false,
      'boolean-negation': false,
      'strip-aliased': true,
    });
}

/** Declares all flags at once: one yargs call per flag takes longer than the rest of the parsing. */
export function declareFlags(parser: Argv, options: Options): Argv {
  const flags = Object.entries(options).map(([key, option]) => ({ flag: flagName(key), ...option }));
  return parser
    .boolean(
      flags
        .filter(({ isSwitch }) => isSwitch)
        .flatMap((option) => (hasNegation(option) ? [option.flag, `no-${option.flag}`] : [option.flag])),
    )
    .nargs(Object.fromEntries(flags.filter(({ isSwitch }) => !isSwitch).map(({ flag }) => [flag, 1])))
    .alias(
      Object.fromEntries(flags.flatMap(({ flag, alias }) => (alias === undefined ? [] : [[flag, alias]]))),
    );
}

/** True if --no-<name> is accepted. */
export function hasNegation({ off, isNegatable }: Options[string]): boolean {
  return off !== undefined || isNegatable === true;
}
