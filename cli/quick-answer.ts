import { packageInfo } from '../api/package-info.ts';

/** Words that request a text instead of running a command: "help train". */
export const HELP = 'help';
const VERSION = 'version';

/**
 * The text for --help (-h) or --version, at any position, and for the words help and version; undefined for
 * any other line and for an unknown command. Loads only the text.
 */
export async function quickAnswer(argv: readonly string[]): Promise<string | undefined> {
  const end = argv.indexOf('--');
  const words = end < 0 ? argv : argv.slice(0, end);
  if (words[0] === HELP) return helpText(commandName(words.slice(1).filter((word) => word !== HELP)));
  if (words.includes('--help') || words.includes('-h'))
    return helpText(words[0] === VERSION ? undefined : commandName(argv));
  return words.includes('--version') || words[0] === VERSION ? packageInfo().version : undefined;
}

/** The text of --help for the terminal's width; undefined for an unknown command. */
async function helpText(command = ''): Promise<string | undefined> {
  const { helpTexts } = await import('./generated/help.ts');
  const texts = helpTexts[command];
  return (
    texts &&
    texts[
      Math.max(
        ...Object.keys(texts)
          .map(Number)
          .filter((width, at) => at === 0 || width <= (process.stdout.columns ?? 100)),
      )
    ]
  );
}

/** The first word of the line, unless it is a flag. */
export function commandName(argv: readonly string[]): string | undefined {
  return argv.length > 0 && !argv[0].startsWith('-') ? argv[0] : undefined;
}
