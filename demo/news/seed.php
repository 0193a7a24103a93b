<?php
// What there is to read when the site is new.

return [
    [
        'title' => 'First swarm of the year over the lower river',
        'lead' => 'Towards nine in the evening the air above the weir turned white.',
        'body' => "The anglers had been waiting for it since Sunday. Towards nine in the evening, with the last light on the water, the first mayflies rose above the weir, and a quarter of an hour later it was hard to see the other bank.\n\nA mayfly spends two years in the river bed and a single day in the air. It does not eat in that time; it has no mouth to do so. By sunrise the street lamps on the bridge had to be swept.",
        'hours_ago' => 2,
        'comments' => [
            ['Ines', 'We stood on the bridge with the children. Nobody said a word.'],
            ['Old Peter', 'Same week as in 1987.'],
        ],
    ],
    [
        'title' => 'The ferry sails until midnight in June',
        'lead' => 'Two more crossings each evening, on trial.',
        'body' => "From the first of June the ferry crosses at 22:45 and at 23:45 as well. The town pays for the trial; whether it stays depends on how many people come.\n\nBicycles travel free after eight.",
        'hours_ago' => 9,
        'comments' => [
            ['Mirko', 'Finally home from the choir without the long way round.'],
        ],
    ],
    [
        'title' => 'The bakery at the market has a new oven',
        'lead' => 'The old one baked for sixty-one years.',
        'body' => "It took eight people and a window frame less to get it in. The rye loaf will be a shade darker at first, says the baker, until they know each other.\n\nThe old oven goes to the museum of the valley.",
        'hours_ago' => 27,
        'comments' => [],
    ],
    [
        'title' => 'Library extends Sunday opening',
        'lead' => 'Reading room open from ten to four, returns at any hour.',
        'body' => "The reading room was so full last winter that people read on the stairs. There will be thirty more seats, and tea.\n\nThe box beside the door takes returns at any hour, as before. Please no sandwiches.",
        'hours_ago' => 50,
        'comments' => [
            ['R. L.', 'The sandwich was a bookmark.'],
            ['Library', 'We know. It was still a sandwich.'],
        ],
    ],
];
