/** The part of picomatch that is used; the package has no types of its own. */
declare module 'picomatch' {
  export default function picomatch(pattern: string): (path: string) => boolean;
}
