import { packageInfo } from '../api/package-info.ts';

/**
 * The text of --help (-h) or --version, wherever the flag stands; undefined for any other line and for an unknown command. Loads
 * nothing but the text.
 */
export async function quickAnswer(argv: readonly string[]): Promise<string | undefined> {
  const end = argv.indexOf('--');
  const words = end < 0 ? argv : argv.slice(0, end);
  if (words.includes('--help') || words.includes('-h')) {
    const { helpTexts } = await import('./generated/help.ts');
    const texts = helpTexts[commandName(argv) ?? ''];
    return texts && texts[Math.max(...Object.keys(texts).map(Number).filter((width, at) => at === 0 || width <= (process.stdout.columns ?? 100)))];
  }
  return words.includes('--version') ? packageInfo().version : undefined;
}

/** The first word of the line, unless it is a flag. */
export function commandName(argv: readonly string[]): string | undefined {
  return argv.length > 0 && !argv[0].startsWith('-') ? argv[0] : undefined;
}
