/** The pattern between two `%`: texts with exactly one character, a `_`, between each two. */
type Part = string[];

/**
 * Compiles a pattern of `like`: `%` matches any text, `_` any character (code point), `\` quotes the next
 * character. Each part is matched at the first place after the part before it. A later place could never
 * match more, so the test does not backtrack: its time is at most the text's length times the pattern's.
 */
export function likeTest(pattern: string): (text: string) => boolean {
  const [first, ...others] = partsOf(pattern);
  const last = others.pop();
  if (last === undefined) return (text) => endOfMatch(first, text, 0) === text.length;
  return (text) => {
    let at = endOfMatch(first, text, 0);
    for (const part of others) if (at >= 0) at = endOfFirstMatch(part, text, at);
    return at >= 0 && startOfLastMatch(last, text) >= at;
  };
}

function partsOf(pattern: string): Part[] {
  const parts: Part[] = [['']];
  for (const [whole, quoted] of pattern.matchAll(/\\([\s\S])|[\s\S]/gu)) {
    const part = parts[parts.length - 1];
    if (whole === '%') parts.push(['']);
    else if (whole === '_') part.push('');
    else part[part.length - 1] += quoted ?? whole;
  }
  return parts;
}

/** The end of a match that starts at a given index, or -1 without a match. */
function endOfMatch(part: Part, text: string, start: number): number {
  let at = start;
  for (const [i, own] of part.entries()) {
    if (i > 0 && at >= text.length) return -1;
    if (i > 0) at += widthAt(text, at);
    if (!text.startsWith(own, at)) return -1;
    at += own.length;
  }
  return at;
}

function endOfFirstMatch(part: Part, text: string, start: number): number {
  let at = text.indexOf(part[0], start);
  while (at >= 0) {
    const end = endOfMatch(part, text, at);
    if (end >= 0 || at >= text.length) return end;
    at = text.indexOf(part[0], at + widthAt(text, at));
  }
  return -1;
}

/** The start of the match that ends with the text, or -1 without a match. */
function startOfLastMatch(part: Part, text: string): number {
  let at = text.length;
  for (let i = part.length - 1; i >= 0; i--) {
    if (!text.endsWith(part[i], at)) return -1;
    at -= part[i].length;
    if (i > 0 && at === 0) return -1;
    if (i > 0) at -= at > 1 && widthAt(text, at - 2) === 2 ? 2 : 1;
  }
  return at;
}

/** Code units of the character at a place. */
function widthAt(text: string, at: number): number {
  return (text.codePointAt(at) as number) > 0xffff ? 2 : 1;
}
