/**
 * Does two works side by side and gives both results. A failure is thrown once both have ended, so that
 * nothing goes on behind it; the first work's goes first.
 */
export async function together<First, Second>(
  first: () => Promise<First>,
  second: () => Promise<Second>,
): Promise<[First, Second]> {
  const [one, other] = await Promise.allSettled([first(), second()]);
  if (one.status === 'rejected') throw one.reason;
  if (other.status === 'rejected') throw other.reason;
  return [one.value, other.value];
}
