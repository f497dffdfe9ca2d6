/** Who imports this has a shell run `jq`. */
export {};
